//! Columns and alignment, by display width. Knows nothing of what it shows.

use unicode_width::UnicodeWidthStr;

/// Which side of its column a cell keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// One column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// How its cells are aligned.
    pub align: Align,
    /// Spaces before it.
    pub gap: usize,
    /// Its least width.
    pub least: usize,
}

/// One cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The text, of one line.
    pub text: String,
    /// How many columns it takes.
    pub span: usize,
}

impl Cell {
    /// A cell of one column.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), span: 1 }
    }

    /// A cell of `span` columns; it never widens them, and keeps to the right of the last.
    pub fn across(text: impl Into<String>, span: usize) -> Self {
        Self { text: text.into(), span: span.max(1) }
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// Cells from the first column on; missing ones are empty.
    Cells(Vec<Cell>),
    /// A line that ignores the columns.
    Text(String),
}

/// Lays rows out: no trailing spaces, each line ends in a newline.
#[must_use]
pub fn render(columns: &[Column], rows: &[Row]) -> String {
    let widths = widths(columns, rows);
    let mut out = String::new();
    for row in rows {
        let mut text = String::new();
        match row {
            Row::Text(line) => text.push_str(line),
            Row::Cells(cells) => lay_out(columns, &widths, cells, &mut text),
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}

/// The width of the widest line that [`render`] makes of the cells.
#[must_use]
pub fn width(columns: &[Column], rows: &[Row]) -> usize {
    columns.iter().zip(widths(columns, rows)).map(|(column, width)| column.gap + width).sum()
}

fn widths(columns: &[Column], rows: &[Row]) -> Vec<usize> {
    let mut widths: Vec<usize> = columns.iter().map(|column| column.least).collect();
    for row in rows {
        let Row::Cells(cells) = row else { continue };
        let mut index = 0;
        for cell in cells {
            if cell.span == 1
                && let Some(width) = widths.get_mut(index)
            {
                *width = (*width).max(cell.text.width());
            }
            index += cell.span;
        }
    }
    widths
}

fn lay_out(columns: &[Column], widths: &[usize], cells: &[Cell], out: &mut String) {
    let mut index = 0;
    for cell in cells {
        let covered = index..(index + cell.span).min(columns.len());
        let Some(first) = columns.get(index) else { return };
        let inner: usize = columns[covered.clone()].iter().skip(1).map(|column| column.gap).sum();
        let room = widths[covered.clone()].iter().sum::<usize>() + inner;
        let padding = room.saturating_sub(cell.text.width());
        let align = columns[covered.end - 1].align;
        pad(out, first.gap);
        // What is too wide for its columns takes the empty room to its left.
        for _ in room..cell.text.width() {
            if out.ends_with("  ") {
                out.pop();
            }
        }
        if align == Align::Right || cell.span > 1 {
            pad(out, padding);
            out.push_str(&cell.text);
        } else {
            out.push_str(&cell.text);
            pad(out, padding);
        }
        index += cell.span;
    }
}

fn pad(out: &mut String, columns: usize) {
    out.extend(std::iter::repeat_n(' ', columns));
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [
        Column { align: Align::Left, gap: 0, least: 0 },
        Column { align: Align::Right, gap: 2, least: 4 },
        Column { align: Align::Left, gap: 1, least: 0 },
    ];

    fn cells(texts: &[&str]) -> Row {
        Row::Cells(texts.iter().map(|&text| Cell::new(text)).collect())
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows =
            [cells(&["µs", "1", "▲"]), Row::Text("a line".into()), cells(&["字字", "12,345"])];
        insta::assert_snapshot!(render(&COLUMNS, &rows), @r"
        µs         1 ▲
        a line
        字字  12,345
        ");
        assert_eq!(width(&COLUMNS, &rows), 14);
    }

    #[test]
    fn a_cell_across_columns_ends_with_the_last_of_them() {
        let rows = [
            cells(&["rate", "1,000", "+5 %"]),
            Row::Cells(vec![Cell::new("verdict"), Cell::across("faster", 2)]),
        ];
        insta::assert_snapshot!(render(&COLUMNS, &rows), @r"
        rate     1,000 +5 %
        verdict      faster
        ");
    }
}
