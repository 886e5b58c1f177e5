//! Text, and how it looks.

use std::borrow::Cow;
use std::io::{self, Write};
use std::mem;

use crossterm::queue;
use crossterm::style::{self, Attribute, SetAttribute, SetBackgroundColor, SetForegroundColor};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A dark colour, whose shade the terminal chooses. Small, since a screen has a style for each cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Color {
    Cyan,
    Green,
    Red,
    Yellow,
}

impl From<Color> for style::Color {
    fn from(color: Color) -> Self {
        match color {
            Color::Cyan => Self::DarkCyan,
            Color::Green => Self::DarkGreen,
            Color::Red => Self::DarkRed,
            Color::Yellow => Self::DarkYellow,
        }
    }
}

/// How a character looks. A terminal's own colours, unless they are set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) foreground: Option<Color>,
    pub(super) background: Option<Color>,
    /// [`BOLD`](Self::BOLD) and others.
    attributes: u8,
}

impl Style {
    pub(super) const BOLD: Self = Self::with(1);
    pub(super) const DIM: Self = Self::with(2);
    pub(super) const UNDERLINED: Self = Self::with(4);
    pub(super) const REVERSED: Self = Self::with(8);

    pub(super) const fn new() -> Self {
        Self::with(0)
    }

    const fn with(attributes: u8) -> Self {
        Self {
            foreground: None,
            background: None,
            attributes,
        }
    }

    /// Returns the style in this colour.
    pub(super) const fn foreground(mut self, color: Color) -> Self {
        self.foreground = Some(color);
        self
    }

    /// Returns the style on this colour.
    pub(super) const fn background(mut self, color: Color) -> Self {
        self.background = Some(color);
        self
    }

    /// Returns the style with all that another one sets.
    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            foreground: match other.foreground {
                Some(color) => Some(color),
                None => self.foreground,
            },
            background: match other.background {
                Some(color) => Some(color),
                None => self.background,
            },
            attributes: self.attributes | other.attributes,
        }
    }

    /// Sets what follows to this style.
    pub(super) fn write(self, output: &mut impl Write) -> io::Result<()> {
        queue!(output, SetAttribute(Attribute::Reset))?;
        for (bit, attribute) in [
            (Self::BOLD, Attribute::Bold),
            (Self::DIM, Attribute::Dim),
            (Self::UNDERLINED, Attribute::Underlined),
            (Self::REVERSED, Attribute::Reverse),
        ] {
            if self.attributes & bit.attributes != 0 {
                queue!(output, SetAttribute(attribute))?;
            }
        }
        if let Some(color) = self.foreground {
            queue!(output, SetForegroundColor(color.into()))?;
        }
        if let Some(color) = self.background {
            queue!(output, SetBackgroundColor(color.into()))?;
        }
        Ok(())
    }
}

/// Text of one style.
#[derive(Clone, Debug)]
pub(super) struct Span<'t> {
    text: Cow<'t, str>,
    style: Style,
}

impl<'t> Span<'t> {
    pub(super) fn raw(text: impl Into<Cow<'t, str>>) -> Self {
        Self::styled(text, Style::new())
    }

    pub(super) fn styled(text: impl Into<Cow<'t, str>>, style: Style) -> Self {
        let text = text.into();
        Self { text, style }
    }
}

/// A line of text.
#[derive(Clone, Debug)]
pub(super) struct Text<'t> {
    spans: Vec<Span<'t>>,
    pub(super) is_right_aligned: bool,
}

impl<'t> Text<'t> {
    pub(super) fn raw(text: impl Into<Cow<'t, str>>) -> Self {
        Self::from(vec![Span::raw(text)])
    }

    pub(super) fn styled(text: impl Into<Cow<'t, str>>, style: Style) -> Self {
        Self::from(vec![Span::styled(text, style)])
    }

    /// Returns the line at the right end of its space.
    pub(super) fn right_aligned(mut self) -> Self {
        self.is_right_aligned = true;
        self
    }

    pub(super) fn characters(&self) -> impl Iterator<Item = (char, Style)> {
        let spans = self.spans.iter();
        spans.flat_map(|span| span.text.chars().map(|char| (char, span.style)))
    }

    /// Breaks the line between words, or within a word that is longer than a line.
    pub(super) fn wrapped(self, columns: usize) -> Vec<Self> {
        let mut lines = Vec::new();
        let mut line: Vec<(char, Style)> = Vec::new();
        let taken = |line: &[(char, Style)]| line.iter().map(|(char, _)| columns_of(*char)).sum();
        for next in self.characters() {
            let used: usize = taken(&line);
            if used + columns_of(next.0) > columns && used > 0 {
                let space = line.iter().rposition(|(char, _)| *char == ' ');
                let rest = match space.filter(|at| line[..*at].iter().any(|(char, _)| *char != ' '))
                {
                    _ if next.0 == ' ' => Vec::new(),
                    Some(space) => line.split_off(space + 1),
                    None => Vec::new(),
                };
                lines.push(mem::replace(&mut line, rest));
                if next.0 == ' ' {
                    continue;
                }
            }
            line.push(next);
        }
        lines.push(line);
        let spans = |line: Vec<(char, Style)>| {
            let spans = line.into_iter();
            spans.map(|(char, style)| Span::styled(char.to_string(), style))
        };
        lines
            .into_iter()
            .map(|line| Self::from(spans(line).collect::<Vec<_>>()))
            .collect()
    }
}

impl<'t> From<Vec<Span<'t>>> for Text<'t> {
    fn from(spans: Vec<Span<'t>>) -> Self {
        Self {
            spans,
            is_right_aligned: false,
        }
    }
}

/// Returns the columns that a text takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// Returns the columns that a character takes: none for those that combine with the one before.
pub(super) fn columns_of(char: char) -> usize {
    char.width().unwrap_or(0)
}
