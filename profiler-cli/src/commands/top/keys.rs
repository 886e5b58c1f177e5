//! The state of the screen, and the keys that change it.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::cursor::{Cursor, Move};
use super::feed::Shown;
use super::line::{Line, Order, sort};

/// The part of the summary that the screen shows, and its order.
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[derive(Debug)]
pub(super) struct View {
    pub(super) order: Order,
    pub(super) filter: String,
    /// `true` while keys are letters of the filter.
    pub(super) is_typing: bool,
    pub(super) is_paused: bool,
    pub(super) shows_help: bool,
    pub(super) rows: Cursor,
    pub(super) ranks: Cursor,
    /// The row that is shown alone.
    pub(super) opened_row: Option<String>,
    /// The rank whose rows are shown.
    pub(super) opened_rank: Option<String>,
    /// `true` if there are ranks to choose from.
    has_ranks: bool,
}

/// What the screen shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A line for each rank.
    Ranks,
    /// A line for each function of a program.
    Rows,
    /// One function.
    Row,
}

/// The keys, for the help.
pub(super) const KEYS: [(&str, &str); 11] = [
    ("s  S", "sorts by the next, the previous column"),
    ("l  i", "sorts by what limits, by the idle time caused"),
    (
        "c g r C G n a",
        "CPU %, GPU %, calls/s, Self CPU, Self GPU, calls, name",
    ),
    ("/", "filters the names; Enter keeps, Esc clears it"),
    ("p  Space", "pauses, continues"),
    (
        "↑ ↓  j k",
        "selects a row, which stays selected when rows move",
    ),
    ("PgUp PgDn", "a page up, down"),
    ("Home End", "the first, the last row"),
    (
        "Enter  Esc",
        "opens the row: history, times of calls, callers; goes back",
    ),
    ("?  h", "shows, hides this help"),
    ("q  Ctrl-C", "quits"),
];

impl View {
    pub(super) fn new(order: Order, filter: String) -> Self {
        Self {
            order,
            filter,
            is_typing: false,
            is_paused: false,
            shows_help: false,
            rows: Cursor::default(),
            ranks: Cursor::default(),
            opened_row: None,
            opened_rank: None,
            has_ranks: false,
        }
    }

    /// Begins with the ranks, or with the rows of one of them.
    pub(super) fn of_ranks(self, opened_rank: Option<String>) -> Self {
        Self {
            has_ranks: true,
            opened_rank,
            ..self
        }
    }

    pub(super) const fn place(&self) -> Place {
        if self.has_ranks && self.opened_rank.is_none() {
            Place::Ranks
        } else if self.opened_row.is_none() {
            Place::Rows
        } else {
            Place::Row
        }
    }

    /// Returns the rows that match the filter, sorted.
    pub(super) fn visible<'l>(&self, shown: &'l Shown) -> Vec<&'l Line> {
        let wanted = self.filter.to_lowercase();
        let matches =
            |line: &&Line| wanted.is_empty() || line.name.to_lowercase().contains(&wanted);
        let mut visible: Vec<&Line> = shown.lines.iter().filter(matches).collect();
        sort(&mut visible, self.order.by(shown.limit));
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
            KeyCode::Char('/') if self.place() == Place::Rows => self.is_typing = true,
            KeyCode::Esc => self.leave(),
            KeyCode::Enter => self.open(),
            KeyCode::Char('s') => self.order = self.order.stepped(1),
            KeyCode::Char('S') => self.order = self.order.stepped(Order::ALL.len() - 1),
            KeyCode::Char('l') => self.order = Order::Limit,
            KeyCode::Char('i') => self.order = Order::Idle,
            KeyCode::Char('c') => self.order = Order::Cpu,
            KeyCode::Char('g') => self.order = Order::Cuda,
            KeyCode::Char('r') => self.order = Order::Rate,
            KeyCode::Char('C') => self.order = Order::CpuTotal,
            KeyCode::Char('G') => self.order = Order::CudaTotal,
            KeyCode::Char('n') => self.order = Order::Calls,
            KeyCode::Char('a') => self.order = Order::Name,
            KeyCode::Up | KeyCode::Char('k') => self.select(Move::Up),
            KeyCode::Down | KeyCode::Char('j') => self.select(Move::Down),
            KeyCode::PageUp => self.select(Move::PageUp),
            KeyCode::PageDown => self.select(Move::PageDown),
            KeyCode::Home => self.select(Move::Home),
            KeyCode::End => self.select(Move::End),
            _ => {}
        }
        true
    }

    fn select(&mut self, key: Move) {
        match self.place() {
            Place::Ranks => self.ranks.press(key),
            Place::Rows => self.rows.press(key),
            Place::Row => {}
        }
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
        self.rows.press(Move::Home);
    }

    /// Opens the selected line. While the help hides it, only that is closed.
    fn open(&mut self) {
        if std::mem::take(&mut self.shows_help) {
            return;
        }
        match self.place() {
            Place::Ranks => {
                self.opened_rank = self.ranks.key().map(str::to_owned);
                self.rows = Cursor::default();
            }
            Place::Rows => self.opened_row = self.rows.key().map(str::to_owned),
            Place::Row => {}
        }
    }

    /// Leaves the help, or else the row, the filter, the rank.
    fn leave(&mut self) {
        if self.is_typing {
            self.is_typing = false;
            self.filter.clear();
        } else if self.shows_help {
            self.shows_help = false;
        } else if self.opened_row.is_some() {
            self.opened_row = None;
        } else if !self.filter.is_empty() {
            self.filter.clear();
        } else if self.has_ranks {
            self.opened_rank = None;
        }
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
        press(&mut view, "l");
        assert_eq!(view.order, Order::Limit);
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
    fn enter_opens_what_is_selected_and_escape_goes_back_one_by_one() {
        let mut view = view().of_ranks(None);
        view.ranks.settle(["zero", "one"].into_iter(), 9);
        // Both keys may come before the next drawing.
        press(&mut view, "j\n");
        assert_eq!(
            (view.place(), view.opened_rank.as_deref()),
            (Place::Rows, Some("one"))
        );
        // Nothing was drawn that could be opened.
        press(&mut view, "\n");
        assert_eq!(view.place(), Place::Rows);
        press(&mut view, "/f\n");
        view.rows.settle(["forward"].into_iter(), 9);
        press(&mut view, "\n?");
        assert_eq!(
            (view.place(), view.opened_row.as_deref()),
            (Place::Row, Some("forward"))
        );
        let mut places = Vec::new();
        for _ in 0..5 {
            press(&mut view, "\u{1b}");
            places.push((view.shows_help, view.place(), view.filter.is_empty()));
        }
        let expected = [
            (false, Place::Row, false),
            (false, Place::Rows, false),
            (false, Place::Rows, true),
            (false, Place::Ranks, true),
            (false, Place::Ranks, true),
        ];
        assert_eq!(places, expected);
    }

    #[test]
    fn enter_closes_the_help_and_opens_nothing_behind_it() {
        let mut view = view();
        view.rows.settle(["forward"].into_iter(), 9);
        press(&mut view, "?\n");
        assert_eq!((view.shows_help, view.place()), (false, Place::Rows));
        press(&mut view, "\n");
        assert_eq!(view.place(), Place::Row);
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
