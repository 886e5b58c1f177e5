//! The state of the screen, and the keys that change it.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::line::{Line, Order, sort};

/// The part of the summary that the screen shows, and its order.
#[derive(Debug)]
pub(super) struct View {
    pub(super) order: Order,
    pub(super) filter: String,
    /// `true` while keys are letters of the filter.
    pub(super) is_typing: bool,
    pub(super) is_paused: bool,
    pub(super) shows_help: bool,
    /// The number of the selected row.
    pub(super) selected: usize,
    /// The number of the first row on the screen. Drawing keeps the selected row on it.
    pub(super) first: usize,
    /// The rows that fit, when the screen was last drawn.
    pub(super) page: usize,
}

/// The keys, for the help.
pub(super) const KEYS: [(&str, &str); 9] = [
    ("s  S", "sorts by the next, the previous column"),
    ("c g r C G n a", "CPU %, GPU %, rate, CPU, GPU, calls, name"),
    ("/", "filters the names; Enter keeps, Esc clears it"),
    ("p  Space", "pauses, continues"),
    ("↑ ↓  j k", "selects a row"),
    ("PgUp PgDn", "a page up, down"),
    ("Home End", "the first, the last row"),
    ("?  h", "shows, hides this help"),
    ("q  Ctrl-C", "quits"),
];

impl View {
    pub(super) const fn new(order: Order, filter: String) -> Self {
        Self {
            order,
            filter,
            is_typing: false,
            is_paused: false,
            shows_help: false,
            selected: 0,
            first: 0,
            page: 1,
        }
    }

    /// Returns the rows that match the filter, sorted.
    pub(super) fn visible<'l>(&self, lines: &'l [Line]) -> Vec<&'l Line> {
        let wanted = self.filter.to_lowercase();
        let matches =
            |line: &&Line| wanted.is_empty() || line.name.to_lowercase().contains(&wanted);
        let mut visible: Vec<&Line> = lines.iter().filter(matches).collect();
        sort(&mut visible, self.order);
        visible
    }

    /// Reacts to a key. Returns `false` if the program is to end.
    #[must_use]
    pub(super) fn press(&mut self, mut key: KeyEvent) -> bool {
        // A terminal sends a key with Alt as Esc and the key, and so do those who type fast.
        if key.modifiers.contains(KeyModifiers::ALT) && key.kind != KeyEventKind::Release {
            self.leave();
            key.modifiers.remove(KeyModifiers::ALT);
        }
        if key.kind == KeyEventKind::Release {
            return true;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && key.code == KeyCode::Char('c') {
            return false;
        }
        if self.is_typing {
            self.type_key(key.code, is_control);
            return true;
        }
        if is_control {
            return true;
        }
        match key.code {
            KeyCode::Char('q') => return false,
            KeyCode::Char('?' | 'h') => self.shows_help = !self.shows_help,
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Esc => self.leave(),
            KeyCode::Char('s') => self.order = self.order.stepped(1),
            KeyCode::Char('S') => self.order = self.order.stepped(Order::ALL.len() - 1),
            KeyCode::Char('c') => self.order = Order::Cpu,
            KeyCode::Char('g') => self.order = Order::Cuda,
            KeyCode::Char('r') => self.order = Order::Rate,
            KeyCode::Char('C') => self.order = Order::CpuTotal,
            KeyCode::Char('G') => self.order = Order::CudaTotal,
            KeyCode::Char('n') => self.order = Order::Calls,
            KeyCode::Char('a') => self.order = Order::Name,
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.selected += 1,
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(self.page),
            KeyCode::PageDown => self.selected += self.page,
            KeyCode::Home => self.selected = 0,
            // Drawing limits it to the last row.
            KeyCode::End => self.selected = usize::MAX / 2,
            _ => {}
        }
        true
    }

    fn type_key(&mut self, code: KeyCode, is_control: bool) {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => self.leave(),
            KeyCode::Backspace => _ = self.filter.pop(),
            KeyCode::Char('u') if is_control => self.filter.clear(),
            KeyCode::Char(letter) if !is_control => self.filter.push(letter),
            _ => {}
        }
        self.selected = 0;
    }

    /// Leaves the help, or else the filter.
    fn leave(&mut self) {
        if self.shows_help && !self.is_typing {
            self.shows_help = false;
        } else {
            self.is_typing = false;
            self.filter.clear();
        }
    }

    /// Keeps the selected row among `rows` rows, and on a screen that has room for `page` of them.
    pub(super) fn scroll(&mut self, rows: usize, page: usize) {
        self.page = page.max(1);
        self.selected = self.selected.min(rows.saturating_sub(1));
        let least = (self.selected + 1).saturating_sub(self.page);
        self.first = self.first.clamp(least, self.selected);
        // No empty rows below the last one.
        self.first = self.first.min(rows.saturating_sub(self.page));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> View {
        View::new(Order::Cpu, String::new())
    }

    fn press(view: &mut View, keys: &str) {
        for key in keys.chars() {
            let code = match key {
                '\n' => KeyCode::Enter,
                '\u{1b}' => KeyCode::Esc,
                '<' => KeyCode::Backspace,
                '↓' => KeyCode::PageDown,
                key => KeyCode::Char(key),
            };
            assert!(view.press(KeyEvent::new(code, KeyModifiers::NONE)));
        }
    }

    #[test]
    fn letters_sort_and_while_the_filter_is_typed_they_are_letters() {
        let mut view = view();
        press(&mut view, "G");
        assert_eq!(view.order, Order::CudaTotal);
        press(&mut view, "/qsx<\n");
        assert_eq!((view.filter.as_str(), view.order), ("qs", Order::CudaTotal));
        press(&mut view, "s");
        assert_eq!((view.filter.as_str(), view.order), ("qs", Order::Calls));
        press(&mut view, "SS\u{1b}");
        assert_eq!((view.filter.as_str(), view.order), ("", Order::CpuTotal));
    }

    #[test]
    fn q_and_control_c_end_the_program_also_while_the_filter_is_typed() {
        let mut view = view();
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert!(!view.press(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE)));
        press(&mut view, "/q");
        assert!(!view.press(control_c));
    }

    #[test]
    fn escape_and_a_key_at_once_are_two_keys() {
        let mut view = view();
        press(&mut view, "/ab");
        assert!(view.press(KeyEvent::new(KeyCode::Char('p'), KeyModifiers::ALT)));
        assert!(view.filter.is_empty() && !view.is_typing && view.is_paused);
    }

    #[test]
    fn the_selected_row_stays_on_the_screen() {
        let mut view = view();
        view.scroll(100, 10);
        press(&mut view, "↓↓jj");
        view.scroll(100, 10);
        assert_eq!((view.selected, view.first), (22, 13));
        press(&mut view, "k");
        view.scroll(100, 10);
        assert_eq!((view.selected, view.first), (21, 13));
        view.scroll(5, 10);
        assert_eq!((view.selected, view.first), (4, 0));
        view.scroll(0, 0);
        assert_eq!((view.selected, view.first), (0, 0));
    }

    #[test]
    fn pause_and_help_are_switches() {
        let mut view = view();
        press(&mut view, "p?");
        assert!(view.is_paused && view.shows_help);
        press(&mut view, "\u{1b} ");
        assert!(!view.is_paused && !view.shows_help);
    }
}
