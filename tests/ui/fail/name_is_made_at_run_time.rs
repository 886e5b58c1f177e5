use profiler_runtime::measured;

#[measured(name = format!("layer {index}"))]
fn formatted(index: usize) -> usize {
    index
}

#[measured(name = std::format!("layer {index}"))]
fn formatted_by_path(index: usize) -> usize {
    index
}

#[measured(name = index.to_string())]
fn converted(index: usize) -> usize {
    index
}

#[measured(name = String::from("layer"))]
fn owned() {}

#[measured(name = &format!("layer {index}"))]
fn borrowed(index: usize) -> usize {
    index
}

fn main() {}
