use profiler_runtime::measure;

fn main() {
    let _guard = measure!("train", log = move |tag, milliseconds| println!("{tag} {milliseconds}"));
    measure!("test", log = || println!("called"), {});
}
