//! The selected line of a list, which stays selected when the lines move.

/// A selection, and the part of the list that is on the screen.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    /// What the lines are called, as of the last drawing. Several keys may come before the next one.
    keys: Vec<String>,
    /// The number of the selected line.
    at: usize,
    /// `true` if the selection stays with its line. Until a key moves it, and after Home, the first line is selected,
    /// whichever that is.
    follows: bool,
    /// The number of the first line on the screen.
    first: usize,
    /// The lines that fit, when the list was last drawn.
    page: usize,
}

/// Where a key moves the selection.
#[derive(Clone, Copy, Debug)]
pub(super) enum Move {
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
}

impl Cursor {
    pub(super) fn press(&mut self, key: Move) {
        let end = self.keys.len().saturating_sub(1);
        let at = match key {
            Move::Up => self.at.saturating_sub(1),
            Move::Down => self.at + 1,
            Move::PageUp => self.at.saturating_sub(self.page),
            Move::PageDown => self.at + self.page,
            Move::Home => 0,
            Move::End => end,
        };
        self.at = at.min(end);
        self.follows = !matches!(key, Move::Home);
    }

    /// Finds the selected line among all lines, and keeps it on a screen that has room for `page` of them.
    pub(super) fn settle<'k>(&mut self, keys: impl Iterator<Item = &'k str>, page: usize) {
        let keys: Vec<String> = keys.map(str::to_owned).collect();
        let selected = self.key().filter(|_| self.follows);
        let found = selected.and_then(|selected| keys.iter().position(|key| key == selected));
        self.at = found.unwrap_or(self.at).min(keys.len().saturating_sub(1));
        self.keys = keys;
        self.page = page.max(1);
        let least = (self.at + 1).saturating_sub(self.page);
        self.first = self.first.clamp(least, self.at);
        // No empty lines below the last one.
        self.first = self.first.min(self.keys.len().saturating_sub(self.page));
    }

    /// Returns what the selected line is called; `None` if there is none, or nothing was drawn yet.
    pub(super) fn key(&self) -> Option<&str> {
        self.keys.get(self.at).map(String::as_str)
    }

    /// Returns the lines that are on the screen, each with whether it is selected.
    pub(super) fn shown<'l, L>(
        &self,
        lines: &'l [L],
    ) -> impl Iterator<Item = (bool, &'l L)> + Clone {
        let (at, first, page) = (self.at, self.first, self.page);
        let lines = lines.iter().enumerate().skip(first).take(page);
        lines.map(move |(number, line)| (number == at, line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settle(cursor: &mut Cursor, keys: &[&str], page: usize) -> (usize, usize, String) {
        cursor.settle(keys.iter().copied(), page);
        let key = cursor.key().unwrap_or_default().to_owned();
        (cursor.at, cursor.first, key)
    }

    #[test]
    fn the_selection_stays_with_its_line_once_a_key_has_moved_it() {
        let mut cursor = Cursor::default();
        assert_eq!(settle(&mut cursor, &["a", "b", "c"], 9).2, "a");
        assert_eq!(settle(&mut cursor, &["c", "b", "a"], 9).2, "c");
        cursor.press(Move::Down);
        assert_eq!(settle(&mut cursor, &["c", "b", "a"], 9).2, "b");
        assert_eq!(
            settle(&mut cursor, &["b", "a", "c"], 9),
            (0, 0, "b".to_owned())
        );
        // Its line is gone: the one in its place is selected.
        assert_eq!(settle(&mut cursor, &["a", "c"], 9).2, "a");
        assert_eq!(settle(&mut cursor, &["b", "c", "a"], 9).2, "a");
        cursor.press(Move::Home);
        assert_eq!(settle(&mut cursor, &["b", "c", "a"], 9).2, "b");
        assert_eq!(settle(&mut cursor, &["c", "b", "a"], 9).2, "c");
    }

    #[test]
    fn the_selected_line_stays_on_the_screen() {
        let names: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut cursor = Cursor::default();
        settle(&mut cursor, &names, 10);
        for key in [Move::PageDown, Move::PageDown, Move::Down, Move::Down] {
            cursor.press(key);
        }
        assert_eq!(settle(&mut cursor, &names, 10), (22, 13, "22".to_owned()));
        cursor.press(Move::Up);
        assert_eq!(settle(&mut cursor, &names, 10), (21, 13, "21".to_owned()));
        assert_eq!(settle(&mut cursor, &names[..5], 10), (4, 0, "4".to_owned()));
        assert_eq!(settle(&mut cursor, &[], 0), (0, 0, String::new()));
        settle(&mut cursor, &names, 10);
        cursor.press(Move::End);
        assert_eq!(settle(&mut cursor, &names, 10), (99, 90, "99".to_owned()));
        assert_eq!(
            cursor
                .shown(&names)
                .filter(|(selected, _)| *selected)
                .count(),
            1
        );
    }
}
