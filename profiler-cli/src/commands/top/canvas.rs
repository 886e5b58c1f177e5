//! A grid of cells with styled text, and how those that have changed are written to a terminal.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;

use crossterm::cursor::MoveTo;
use crossterm::queue;
use crossterm::style::{Attribute, Print, SetAttribute};

use super::styled::{Style, Text, columns_of};

/// Lines of text, which are cut at the end of their space unless they are wrapped.
pub(super) struct Paragraph<'t> {
    lines: Vec<Text<'t>>,
    is_wrapped: bool,
}

impl<'t> Paragraph<'t> {
    pub(super) fn new(lines: Vec<Text<'t>>) -> Self {
        Self {
            lines,
            is_wrapped: false,
        }
    }

    pub(super) fn wrapped(lines: Vec<Text<'t>>) -> Self {
        Self {
            lines,
            is_wrapped: true,
        }
    }
}

/// A part of the screen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    column: usize,
    row: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Area {
    /// Returns the first rows, and the others.
    pub(super) fn split_rows(self, rows: usize) -> (Self, Self) {
        let rows = rows.min(self.height);
        let (mut above, mut below) = (self, self);
        above.height = rows;
        below.row += rows;
        below.height -= rows;
        (above, below)
    }

    /// Returns both halves, with columns between them.
    pub(super) fn halves(self, between: usize) -> (Self, Self) {
        let columns = self.width.saturating_sub(between);
        let (mut left, mut right) = (self, self);
        left.width = columns / 2;
        right.width = columns - left.width;
        right.column += self.width - right.width;
        (left, right)
    }
}

/// A place for one character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    /// `None` behind a character that takes two columns.
    character: Option<char>,
    style: Style,
}

/// What a screen shows.
#[derive(Debug)]
pub(super) struct Frame {
    columns: usize,
    cells: Vec<Cell>,
    /// The combining characters that belong to a cell, which few cells have.
    combining: BTreeMap<usize, String>,
}

impl Frame {
    pub(super) fn new(columns: usize, rows: usize) -> Self {
        let cell = Cell {
            character: Some(' '),
            style: Style::new(),
        };
        Self {
            columns,
            cells: vec![cell; columns * rows],
            combining: BTreeMap::new(),
        }
    }

    pub(super) fn area(&self) -> Area {
        Area {
            column: 0,
            row: 0,
            width: self.columns,
            height: self.rows().count(),
        }
    }

    /// Returns the indices of the cells of each row.
    fn rows(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (columns, cells) = (self.columns.max(1), self.cells.len());
        (0..cells)
            .step_by(columns)
            .map(move |first| first..(first + columns).min(cells))
    }

    /// Returns the text of each row, without spaces at its end.
    pub(super) fn texts(&self) -> impl Iterator<Item = String> {
        self.rows().map(|row| {
            let mut text = String::with_capacity(row.len());
            for index in row {
                text.extend(self.cells[index].character);
                text.push_str(self.combining_at(index));
            }
            text.truncate(text.trim_end().len());
            text
        })
    }

    /// Returns the combining characters that belong to a cell.
    fn combining_at(&self, index: usize) -> &str {
        self.combining.get(&index).map_or("", String::as_str)
    }

    /// Draws lines of text.
    pub(super) fn draw(&mut self, paragraph: Paragraph<'_>, area: Area) {
        let Paragraph { lines, is_wrapped } = paragraph;
        let lines: Vec<Text<'_>> = if is_wrapped {
            let lines = lines.into_iter();
            lines.flat_map(|line| line.wrapped(area.width)).collect()
        } else {
            lines
        };
        for (row, line) in lines.iter().take(area.height).enumerate() {
            self.put(line, (area.column, area.row + row), area.width);
        }
    }

    /// Draws a table: cells of these widths, with `gap` columns between them.
    pub(super) fn draw_table<'t>(
        &mut self,
        rows: impl IntoIterator<Item = (Style, Vec<Text<'t>>)>,
        (widths, gap): (&[usize], usize),
        area: Area,
    ) {
        for (row, (style, cells)) in rows.into_iter().take(area.height).enumerate() {
            let (row, mut column) = (area.row + row, 0);
            for (cell, width) in cells.iter().zip(widths) {
                let room = area.width.saturating_sub(column);
                // The terminal is too narrow for this cell and those after it.
                if room == 0 {
                    break;
                }
                self.put(cell, (area.column + column, row), room.min(*width));
                column += width + gap;
            }
            let from = row * self.columns + area.column;
            for cell in &mut self.cells[from..from + area.width] {
                cell.style = style.and(cell.style);
            }
        }
    }

    /// Writes a line of text into `width` columns.
    fn put(&mut self, text: &Text<'_>, (column, row): (usize, usize), width: usize) {
        let taken: usize = text.characters().map(|(char, _)| columns_of(char)).sum();
        let mut at = if text.is_right_aligned {
            width.saturating_sub(taken)
        } else {
            0
        };
        let from = row * self.columns + column;
        let mut last = None;
        for (char, style) in text.characters() {
            let columns = columns_of(char);
            if columns == 0 {
                // Of a character that is not shown, neither is what belongs to it.
                if let Some(last) = last {
                    self.combining.entry(last).or_default().push(char);
                }
                continue;
            }
            if at + columns > width {
                break;
            }
            for number in 0..columns {
                let index = from + at + number;
                self.combining.remove(&index);
                self.cells[index] = Cell {
                    character: (number == 0).then_some(char),
                    style,
                };
            }
            last = Some(from + at);
            at += columns;
        }
    }

    /// Writes the cells that differ from those of another frame of the same size.
    pub(super) fn write_changes(&self, from: &Self, output: &mut impl Write) -> io::Result<()> {
        let mut style = None;
        for (row, cells) in self.rows().enumerate() {
            let mut expected = None;
            for (column, index) in cells.enumerate() {
                let (cell, combining) = (self.cells[index], self.combining_at(index));
                let is_same = cell == from.cells[index] && combining == from.combining_at(index);
                let Some(character) = cell.character.filter(|_| !is_same) else {
                    continue;
                };
                if expected != Some(column) {
                    let place = |at: usize| u16::try_from(at).unwrap_or(u16::MAX);
                    queue!(output, MoveTo(place(column), place(row)))?;
                }
                if style != Some(cell.style) {
                    cell.style.write(output)?;
                    style = Some(cell.style);
                }
                queue!(output, Print(character), Print(combining))?;
                expected = Some(column + columns_of(character));
            }
        }
        queue!(output, SetAttribute(Attribute::Reset))?;
        output.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::super::styled::Span;
    use super::*;

    fn texts(frame: &Frame) -> Vec<String> {
        frame.texts().collect()
    }

    #[test]
    fn lines_are_cut_or_wrapped_between_words() {
        let mut frame = Frame::new(8, 4);
        frame.draw(
            Paragraph::new(vec![Text::raw("a line too long")]),
            frame.area(),
        );
        assert_eq!(texts(&frame), ["a line t", "", "", ""]);
        let text = Text::raw("one two  indeed unbreakable");
        frame.draw(Paragraph::wrapped(vec![text]), frame.area());
        assert_eq!(texts(&frame)[..3], ["one two", "indeed", "unbreaka"]);
    }

    #[test]
    fn wide_characters_take_two_cells_and_combining_ones_none() {
        let mut frame = Frame::new(5, 1);
        frame.draw(
            Paragraph::new(vec![Text::raw("界e\u{301}界界")]),
            frame.area(),
        );
        assert_eq!(texts(&frame), ["界e\u{301}界"]);
        let right = Text::raw("界").right_aligned();
        frame.draw_table([(Style::BOLD, vec![right])], (&[5], 1), frame.area());
        assert_eq!(frame.cells[3].character, Some('界'));
        assert_eq!(frame.cells[0].style, Style::BOLD);
    }

    #[test]
    fn only_changes_are_written() {
        let mut before = Frame::new(6, 2);
        before.draw(Paragraph::new(vec![Text::raw("abcdef")]), before.area());
        let mut after = Frame::new(6, 2);
        let text = vec![
            Span::raw("ab"),
            Span::styled("XY", Style::BOLD),
            Span::raw("ef"),
        ];
        after.draw(Paragraph::new(vec![Text::from(text)]), after.area());
        let mut written = Vec::new();
        after.write_changes(&before, &mut written).expect("memory");
        let written = String::from_utf8(written).expect("text");
        assert_eq!(written, "\u{1b}[1;3H\u{1b}[0m\u{1b}[1mXY\u{1b}[0m");
    }

    #[test]
    fn halves_and_rows_share_an_area() {
        let (left, right) = Frame::new(111, 3).area().halves(2);
        assert_eq!((left.width, right.column, right.width), (54, 56, 55));
        let (above, below) = Frame::new(1, 3).area().split_rows(5);
        assert_eq!((above.height, below.height), (3, 0));
    }
}
