//! A program with parts of candle's models, without an attribute or a span of its own, has candle's spans in the table.

use candle_core::{DType, Device, Module, Tensor};
use candle_nn::{VarBuilder, VarMap};
use candle_transformers::models::with_tracing::{Embedding, layer_norm, linear};
use profiler_runtime::{ProfilerLayer, summary};
use tracing_subscriber::layer::SubscriberExt;

#[test]
fn the_table_lists_candles_own_spans() -> candle_core::Result<()> {
    let subscriber = tracing_subscriber::registry().with(ProfilerLayer::new());
    tracing::subscriber::set_global_default(subscriber).expect("the only one");

    let device = Device::Cpu;
    let weights = VarMap::new();
    let builder = VarBuilder::from_varmap(&weights, DType::F32, &device);
    let embed = Embedding::new(32, 16, builder.pp("embed"))?;
    let norm = layer_norm(16, 1e-5, builder.pp("norm"))?;
    let head = linear(16, 4, builder.pp("head"))?;
    let tokens = Tensor::new(&[1_u32, 7, 3], &device)?;
    for _ in 0..10 {
        let logits = head.forward(&norm.forward(&embed.forward(&tokens)?)?)?;
        assert_eq!(logits.dims(), [3, 4]);
    }
    let table = summary();
    println!("{table}");
    for part in ["embedding", "layer-norm", "linear"] {
        let name = format!("candle_transformers::models::with_tracing::{part}");
        let times = table
            .row(&name)
            .map(|row| (row.calls, row.cpu.map(|cpu| cpu.calls)));
        // Each part creates its span once and enters it in each `forward`.
        assert_eq!(times, Some((10, Some(10))), "{name}");
    }
    Ok(())
}
