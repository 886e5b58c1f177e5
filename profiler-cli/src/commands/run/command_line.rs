//! A command line in one argument.

/// Splits a text into words at spaces. Single and double quotes keep a word together; a backslash is a letter like others,
/// as in paths on Windows. No shell is asked: nothing else has a meaning.
pub(super) fn split(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for char in text.chars() {
        match quote {
            Some(open) if char == open => quote = None,
            None if char == '"' || char == '\'' => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            None if char.is_whitespace() => words.extend(word.take()),
            Some(_) | None => word.get_or_insert_default().push(char),
        }
    }
    if let Some(open) = quote {
        return Err(format!("a quote ({open}) is not closed"));
    }
    words.extend(word);
    if words.is_empty() {
        return Err("there is no program to run".to_owned());
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_words_together() {
        for (text, words) in [
            ("app", &["app"][..]),
            ("  app  --n 3 ", &["app", "--n", "3"]),
            (
                "'my app' \"a b\"c '' x\"'\"y",
                &["my app", "a bc", "", "x'y"],
            ),
            (r"C:\app.exe", &[r"C:\app.exe"]),
        ] {
            assert_eq!(split(text).expect("it is valid"), words);
        }
        assert!(split("app 'x").is_err());
        assert!(split("  ").is_err());
    }
}
