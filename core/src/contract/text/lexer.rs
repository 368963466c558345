//! Splits proto source text into tokens.

use super::ContractError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// An identifier, a dotted name or a number without its sign.
    Word(&'a str),
    /// A string; its content does not matter to anyone.
    Text,
    /// Any other character.
    Symbol(char),
    End,
}

#[derive(Debug)]
pub(super) struct Lexer<'a> {
    rest: &'a str,
    line: u32,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            rest: text.strip_prefix('\u{feff}').unwrap_or(text),
            line: 1,
        }
    }

    /// What is wrong at this place.
    pub(super) fn error(&self, what: impl Into<String>) -> ContractError {
        ContractError::Text {
            line: self.line,
            what: what.into(),
        }
    }

    pub(super) fn next(&mut self) -> Result<Token<'a>, ContractError> {
        self.skip_space_and_comments()?;
        let Some(first) = self.rest.chars().next() else {
            return Ok(Token::End);
        };
        if is_word(first) {
            let end = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
            if end > MAX_NAME {
                return Err(self.error(format!("a name of more than {MAX_NAME} bytes")));
            }
            return Ok(Token::Word(self.take(end)));
        }
        self.take(first.len_utf8());
        match first {
            '"' | '\'' => self.skip_string(first).map(|()| Token::Text),
            symbol => Ok(Token::Symbol(symbol)),
        }
    }

    /// What comes next, without taking it.
    pub(super) fn peek(&mut self) -> Result<Token<'a>, ContractError> {
        let (rest, line) = (self.rest, self.line);
        let token = self.next();
        (self.rest, self.line) = (rest, line);
        token
    }

    fn skip_space_and_comments(&mut self) -> Result<(), ContractError> {
        loop {
            let end = self.rest.find(|c: char| !c.is_whitespace());
            self.take(end.unwrap_or(self.rest.len()));
            if self.rest.starts_with("//") {
                let end = self.rest.find(['\n', '\r']);
                self.take(end.unwrap_or(self.rest.len()));
            } else if self.rest.starts_with("/*") {
                match self.rest.find("*/") {
                    Some(end) => drop(self.take(end + 2)),
                    None => return Err(self.error("a comment without an end")),
                }
            } else {
                return Ok(());
            }
        }
    }

    fn skip_string(&mut self, quote: char) -> Result<(), ContractError> {
        let mut escaped = false;
        for (index, c) in self.rest.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '\n' | '\r' => break,
                _ if c == quote => {
                    self.take(index + quote.len_utf8());
                    return Ok(());
                }
                _ => {}
            }
        }
        Err(self.error("a string without an end"))
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        let lines = taken.bytes().filter(|byte| *byte == b'\n').count();
        self.line = self.line.saturating_add(lines as u32);
        self.rest = rest;
        taken
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.'
}

/// Far beyond any real name, and short enough that names of names stay affordable.
pub(super) const MAX_NAME: usize = 1024;
