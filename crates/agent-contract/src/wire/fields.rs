//! Reading named fields of one JSON object, with errors that name the field and never its value.

use serde_json::{Map, Value};

use crate::{ContractError, RouteName};

/// One object of an answer, and where it came from.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    route: RouteName,
    what: &'static str,
    object: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    pub(crate) fn of(route: RouteName, what: &'static str, value: &'a Value) -> Result<Self, ContractError> {
        match value.as_object() {
            Some(object) => Ok(Self { route, what, object }),
            None => Err(ContractError::malformed(route, format!("{what} is not an object"))),
        }
    }

    pub(crate) fn fault(&self, name: &str, want: &str) -> ContractError {
        ContractError::malformed(self.route, format!("{}.{name} is not {want}", self.what))
    }

    /// The value, none when it is absent or null.
    pub(crate) fn optional(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    /// The value, which must be there, null included.
    pub(crate) fn present(&self, name: &str) -> Result<&'a Value, ContractError> {
        self.object.get(name).ok_or_else(|| self.fault(name, "there"))
    }

    pub(crate) fn text(&self, name: &str) -> Result<&'a str, ContractError> {
        self.optional(name).and_then(Value::as_str).ok_or_else(|| self.fault(name, "text"))
    }

    pub(crate) fn full_text(&self, name: &str) -> Result<&'a str, ContractError> {
        Some(self.text(name)?)
            .filter(|text| !text.is_empty())
            .ok_or_else(|| self.fault(name, "text that says something"))
    }

    pub(crate) fn optional_text(&self, name: &str) -> Result<Option<&'a str>, ContractError> {
        match self.optional(name) {
            None => Ok(None),
            Some(value) => value.as_str().map(Some).ok_or_else(|| self.fault(name, "text")),
        }
    }

    pub(crate) fn boolean(&self, name: &str) -> Result<bool, ContractError> {
        self.optional(name).and_then(Value::as_bool).ok_or_else(|| self.fault(name, "true or false"))
    }

    pub(crate) fn integer(&self, name: &str) -> Result<u64, ContractError> {
        self.optional(name).and_then(Value::as_u64).ok_or_else(|| self.fault(name, "a count"))
    }

    pub(crate) fn array(&self, name: &str) -> Result<&'a [Value], ContractError> {
        self.optional(name).and_then(Value::as_array).map(Vec::as_slice).ok_or_else(|| self.fault(name, "a list"))
    }

    pub(crate) fn object(&self, name: &str, what: &'static str) -> Result<Fields<'a>, ContractError> {
        self.optional_object(name, what)?.ok_or_else(|| self.fault(name, "an object"))
    }

    pub(crate) fn optional_object(&self, name: &str, what: &'static str) -> Result<Option<Fields<'a>>, ContractError> {
        match self.optional(name) {
            None => Ok(None),
            Some(value) => match value.as_object() {
                Some(object) => Ok(Some(Fields { route: self.route, what, object })),
                None => Err(self.fault(name, "an object")),
            },
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.object.keys().cloned().collect()
    }

    /// A list of texts.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>, ContractError> {
        self.array(name)?
            .iter()
            .map(|value| value.as_str().map(str::to_owned).ok_or_else(|| self.fault(name, "a list of texts")))
            .collect()
    }

    /// The `name` of each entry of a list of objects.
    pub(crate) fn names_in(&self, name: &str) -> Result<Vec<String>, ContractError> {
        self.array(name)?
            .iter()
            .map(|entry| {
                let named = entry.get("name").and_then(Value::as_str);
                named.map(str::to_owned).ok_or_else(|| self.fault(name, "a list of named entries"))
            })
            .collect()
    }
}
