//! Runs the service. `/metrics` shows its handlers to Prometheus.

use axum::routing::get;
use profiler_runtime::{ProfilerLayer, summary};
use tracing_subscriber::layer::SubscriberExt;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let _profiler = profiler_runtime::init()?;
    let subscriber = tracing_subscriber::registry().with(ProfilerLayer::new().whole_spans());
    tracing::subscriber::set_global_default(subscriber)?;

    let metrics = get(|| async { summary().to_prometheus() });
    let routes = spans_of_a_service::routes().route("/metrics", metrics);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    println!(
        "http://{}/square/7 and http://{0}/metrics",
        listener.local_addr()?
    );
    axum::serve(listener, routes).await?;
    Ok(())
}
