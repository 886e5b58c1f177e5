//! Methods of `async_trait`, with the attribute on the method and on the block.
#![deny(warnings)]

use profiler_runtime::measure_execution_time;

#[async_trait::async_trait]
trait Service: Sync {
    async fn call(&self, with: u8) -> Result<u8, std::num::TryFromIntError>;

    #[measure_execution_time]
    async fn twice(&self) -> Result<u8, std::num::TryFromIntError> {
        Ok(2 * self.call(1).await?)
    }
}

struct Inside;

#[async_trait::async_trait]
impl Service for Inside {
    #[measure_execution_time(bypass = with == 9)]
    async fn call(&self, with: u8) -> Result<u8, std::num::TryFromIntError> {
        if with == 0 {
            return Ok(100);
        }
        std::future::ready(i32::from(with)).await.try_into()
    }
}

struct Outside;

#[measure_execution_time]
#[async_trait::async_trait]
impl Service for Outside {
    async fn call(&self, with: u8) -> Result<u8, std::num::TryFromIntError> {
        (i32::from(with) + 1).try_into()
    }
}

#[tokio::main(flavor = "current_thread")]
#[measure_execution_time]
async fn main() {
    let services: [Box<dyn Service>; 2] = [Box::new(Inside), Box::new(Outside)];
    assert_eq!(services[0].twice().await, Ok(2));
    assert_eq!(services[1].twice().await, Ok(4));
    assert_eq!(services[0].call(0).await, Ok(100));
}
