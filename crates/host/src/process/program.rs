//! The name of the program.

/// Returns the name of the program's file, or `program` on a target that does not tell.
pub fn name() -> String {
    let path = std::env::current_exe().ok();
    let name = path.as_ref().and_then(|path| path.file_name());
    name.map_or_else(
        || "program".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}
