//! Takes a request object apart, field by field, so that each mistake has its own code.

use rules::refusal::{Refusal, RefusalCode};
use serde_json::{Map, Value};

/// The fields of a body that were not asked for yet.
pub(crate) struct Fields {
    rest: Map<String, Value>,
}

impl Fields {
    /// Refuses anything but an object.
    pub(crate) fn of(value: Value) -> Result<Self, Refusal> {
        match value {
            Value::Object(rest) => Ok(Self { rest }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(Refusal::new(RefusalCode::WrongType, "the body must be a JSON object"))
            }
        }
    }

    /// Any value; `null` counts as not given.
    pub(crate) fn optional(&mut self, name: &str) -> Option<Value> {
        self.rest.remove(name).filter(|value| !value.is_null())
    }

    /// Any value that must be given.
    pub(crate) fn required(&mut self, name: &str) -> Result<Value, Refusal> {
        self.optional(name).ok_or_else(|| missing(name))
    }

    /// A string, if given.
    pub(crate) fn optional_string(&mut self, name: &str) -> Result<Option<String>, Refusal> {
        self.optional(name).map(|value| string(name, value)).transpose()
    }

    /// A string that must be given.
    pub(crate) fn required_string(&mut self, name: &str) -> Result<String, Refusal> {
        self.required(name).and_then(|value| string(name, value))
    }

    /// A whole number from 0, if given.
    pub(crate) fn optional_u64(&mut self, name: &str) -> Result<Option<u64>, Refusal> {
        self.optional(name)
            .map(|value| {
                value.as_u64().ok_or_else(|| {
                    Refusal::new(RefusalCode::WrongType, format!("`{name}` must be a whole number, 0 or greater"))
                })
            })
            .transpose()
    }

    /// Refuses what is left.
    pub(crate) fn finish(self) -> Result<(), Refusal> {
        match self.rest.keys().next() {
            None => Ok(()),
            Some(name) => {
                let shown: String = name.chars().filter(|letter| !letter.is_control()).take(64).collect();
                Err(Refusal::new(RefusalCode::UnknownField, format!("`{shown}` is not a field of this request")))
            }
        }
    }
}

/// A field that must be given and is not.
pub(crate) fn missing(name: &str) -> Refusal {
    Refusal::new(RefusalCode::MissingField, format!("`{name}` must be given"))
}

fn string(name: &str, value: Value) -> Result<String, Refusal> {
    match value {
        Value::String(text) => Ok(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(Refusal::new(RefusalCode::WrongType, format!("`{name}` must be a string")))
        }
    }
}
