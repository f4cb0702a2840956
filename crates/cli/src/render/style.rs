//! Colour, where it is wanted, and how wide text may become.

/// Columns of a terminal whose width is not asked for.
const USUAL_COLUMNS: usize = 80;

/// Colours text, or leaves it alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    color: bool,
    columns: usize,
}

impl Style {
    pub(crate) fn new(color: bool) -> Self {
        Self { color, columns: USUAL_COLUMNS }
    }

    /// Without colour, for a place that is this wide.
    pub(crate) fn plain(columns: usize) -> Self {
        Self { color: false, columns }
    }

    /// Most columns of a line that stands behind a bar.
    pub(crate) fn columns(self) -> usize {
        self.columns
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn warn(self, text: &str) -> String {
        self.paint("1;33", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}
