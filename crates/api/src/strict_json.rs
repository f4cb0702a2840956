//! JSON without surprises: one value, no key twice, bounded nesting, nothing after it.

use std::fmt;

use rules::refusal::{Refusal, RefusalCode};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::limits::JSON_MAX_DEPTH;

/// Parses a whole body.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, Refusal> {
    let text = std::str::from_utf8(bytes).map_err(|_| malformed("the body is not UTF-8"))?;
    if text.trim().is_empty() {
        return Err(malformed("the body is empty: send a JSON object"));
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Strict { depth: 0 }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| malformed(&describe(&error)))?;
    Ok(value)
}

/// Says where and what kind, but never quotes the body.
fn describe(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Eof => "it ends too early",
        serde_json::error::Category::Io | serde_json::error::Category::Syntax => "it is not JSON",
        serde_json::error::Category::Data => "a key stands twice, a number is out of range or it is nested too deep",
    };
    format!("the body cannot be read: {what} (line {}, column {})", error.line(), error.column())
}

fn malformed(detail: &str) -> Refusal {
    Refusal::new(RefusalCode::MalformedJson, detail)
}

#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        if self.depth >= JSON_MAX_DEPTH {
            return Err(E::custom("nested too deep"));
        }
        Ok(Self { depth: self.depth + 1 })
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom("key twice"));
            }
            let value = access.next_value_seed(inner)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_what_json_is() {
        let text = r#" {"a":[1,-2,3.5,true,null,"x\u00e9"],"b":{}} "#;
        assert_eq!(parse(text.as_bytes()).unwrap(), json!({"a": [1, -2, 3.5, true, null, "xé"], "b": {}}));
    }

    #[test]
    fn refuses_what_two_readers_could_read_differently() {
        let deep = format!("{}1{}", "[".repeat(33), "]".repeat(33));
        let very_deep = "[".repeat(100_000);
        for text in [
            "",
            "  ",
            "{",
            r#"{"a":1}{"b":2}"#,
            r#"{"a":1} x"#,
            r#"{"a":1,"a":2}"#,
            r#"{"a":{"b":1,"b":1}}"#,
            r#"{"a":1,}"#,
            r#"{'a':1}"#,
            "{\"a\":\"\u{1}\"}",
            r#"{"a":"\ud800"}"#,
            "NaN",
            "1e999",
            deep.as_str(),
            very_deep.as_str(),
        ] {
            let shown: String = text.chars().take(20).collect();
            assert_eq!(
                parse(text.as_bytes()).map_err(|refusal| refusal.code),
                Err(RefusalCode::MalformedJson),
                "{shown}"
            );
        }
        assert_eq!(parse(b"{\"a\":\"\xff\"}").map_err(|refusal| refusal.code), Err(RefusalCode::MalformedJson));
        assert!(parse(format!("{}1{}", "[".repeat(32), "]".repeat(32)).as_bytes()).is_ok());
    }

    #[test]
    fn never_quotes_the_body() {
        let refusal = parse(br#"{"sk-secret":1,"sk-secret":2}"#).unwrap_err();
        assert!(!refusal.detail.contains("sk-secret"));
    }
}
