//! Whether a client that was written for one description can go on with another one.

use std::collections::BTreeSet;

use serde_json::Value;

/// Who writes what a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    /// The client: what it may send must stay right.
    ByClient,
    /// The daemon: what it says must stay there.
    ByDaemon,
}

/// Each way in which such a client would break.
pub(crate) fn breaks(kept: &Value, now: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (path, methods) in object(&kept["paths"]) {
        for (method, operation) in object(methods) {
            let at = format!("{method} {path}");
            match now["paths"].get(path).and_then(|methods| methods.get(method)) {
                Some(present) => Compared { kept, now, found: &mut found }.operation(&at, operation, present),
                None => found.push(format!("{at} is gone")),
            }
        }
    }
    found
}

struct Compared<'a> {
    kept: &'a Value,
    now: &'a Value,
    found: &'a mut Vec<String>,
}

impl Compared<'_> {
    fn operation(&mut self, at: &str, before: &Value, after: &Value) {
        if !before["security"].is_array() && after["security"].is_array() {
            self.found.push(format!("{at} needs a token now"));
        }
        self.parameters(at, &before["parameters"], &after["parameters"]);
        let body = "/requestBody/content/application~1json/schema";
        match (before.pointer(body), after.pointer(body)) {
            (Some(before), Some(after)) => self.schema(&format!("{at}, body"), before, after, Written::ByClient, &[]),
            (None, None) => {}
            (before, _) => self.found.push(format!("{at} took {} body", if before.is_some() { "a" } else { "no" })),
        }
        for (status, reply) in object(&before["responses"]) {
            let at = format!("{at}, {status}");
            let Some(present) = after["responses"].get(status) else {
                self.found.push(format!("{at} is not answered any more"));
                continue;
            };
            for (kind, content) in object(&reply["content"]) {
                match present["content"].get(kind) {
                    Some(present) => {
                        self.schema(&at, &content["schema"], &present["schema"], Written::ByDaemon, &[]);
                    }
                    None => self.found.push(format!("{at} is no {kind} any more")),
                }
            }
        }
    }

    fn parameters(&mut self, at: &str, before: &Value, after: &Value) {
        let same = |one: &Value, other: &Value| one["name"] == other["name"] && one["in"] == other["in"];
        for parameter in list(before) {
            let at = format!("{at}, parameter {}", parameter["name"]);
            match list(after).iter().find(|other| same(parameter, other)) {
                Some(other) => self.schema(&at, &parameter["schema"], &other["schema"], Written::ByClient, &[]),
                None => self.found.push(format!("{at} is gone")),
            }
        }
        for parameter in list(after).iter().filter(|parameter| parameter["required"] == true) {
            let known = list(before).iter().find(|other| same(parameter, other));
            if known.is_none_or(|known| known["required"] != true) {
                self.found.push(format!("{at}, parameter {} is required now", parameter["name"]));
            }
        }
    }

    /// `within` holds the names that are being compared: a schema may hold itself.
    fn schema(&mut self, at: &str, before: &Value, after: &Value, written: Written, within: &[&str]) {
        let name = before["$ref"].as_str();
        if name.is_some_and(|name| within.contains(&name)) {
            return;
        }
        let within: Vec<&str> = within.iter().copied().chain(name).collect();
        let (before, after) = (resolved(self.kept, before), resolved(self.now, after));
        let (types_before, types_after) = (types(before), types(after));
        let fits = match written {
            Written::ByClient => types_before.is_subset(&types_after),
            Written::ByDaemon => types_after.is_subset(&types_before),
        };
        if !fits {
            self.found.push(format!("{at} has another type: {types_before:?}, now {types_after:?}"));
        }
        for value in list(&before["enum"]) {
            if after["enum"].is_array() && !list(&after["enum"]).contains(value) {
                self.found.push(format!("{at} knows {value} no more"));
            }
        }
        if written == Written::ByClient {
            self.bounds(at, before, after);
        }
        self.fields(at, before, after, written, &within);
        for part in ["items", "additionalProperties"] {
            if before[part].is_object() && after[part].is_object() {
                self.schema(&format!("{at}, {part}"), &before[part], &after[part], written, &within);
            }
        }
        for kind in ["oneOf", "anyOf", "allOf"] {
            for (number, form) in list(&before[kind]).iter().enumerate() {
                let fits = list(&after[kind]).iter().any(|other| {
                    let mut found = Vec::new();
                    let mut compared = Compared { kept: self.kept, now: self.now, found: &mut found };
                    compared.schema(at, form, other, written, &within);
                    found.is_empty()
                });
                if !fits {
                    self.found.push(format!("{at}: no form of it is as form {number} was"));
                }
            }
        }
    }

    fn fields(&mut self, at: &str, before: &Value, after: &Value, written: Written, within: &[&str]) {
        for (field, schema) in object(&before["properties"]) {
            match after["properties"].get(field) {
                Some(present) => self.schema(&format!("{at}, {field}"), schema, present, written, within),
                None => self.found.push(format!("{at}, {field} is gone")),
            }
        }
        let (from, to, what) = match written {
            Written::ByClient => (after, before, "is required now"),
            Written::ByDaemon => (before, after, "may be missing now"),
        };
        for field in list(&from["required"]).iter().filter(|field| !list(&to["required"]).contains(field)) {
            self.found.push(format!("{at}, {field} {what}"));
        }
    }

    /// What a client may send did not become less.
    fn bounds(&mut self, at: &str, before: &Value, after: &Value) {
        for (bound, is_upper) in [
            ("maxLength", true),
            ("maximum", true),
            ("maxItems", true),
            ("minLength", false),
            ("minimum", false),
            ("minItems", false),
        ] {
            let narrower = match (before[bound].as_f64(), after[bound].as_f64()) {
                (_, None) => false,
                (None, Some(_)) => true,
                (Some(before), Some(after)) => (is_upper && after < before) || (!is_upper && after > before),
            };
            if narrower {
                self.found.push(format!("{at}: {bound} was {}, is {}", before[bound], after[bound]));
            }
        }
        for exact in ["pattern", "format", "enum"] {
            if after[exact] != before[exact] && (exact != "enum" || before[exact].is_null()) && !after[exact].is_null()
            {
                self.found.push(format!("{at}: {exact} was {}, is {}", before[exact], after[exact]));
            }
        }
    }
}

fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(reference) => document.pointer(reference.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

fn types(schema: &Value) -> BTreeSet<&str> {
    match &schema["type"] {
        Value::String(one) => BTreeSet::from([one.as_str()]),
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => BTreeSet::new(),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}
