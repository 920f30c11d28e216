/// Why a profile's file was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, `{field}`: {problem}")]
pub struct ProfileFileError {
    line: usize,
    field: String,
    problem: String,
}

impl ProfileFileError {
    /// The line, the first being 1.
    ///
    /// ```
    /// let error = oncekey::Profile::from_toml("id = 'acme'\nmin-delay = 'soon'").unwrap_err();
    /// assert_eq!(error.line(), 2);
    /// ```
    pub fn line(&self) -> usize {
        self.line
    }

    /// The field, with the tables that it is in, as in `rule.status`. Empty
    /// where the text is no TOML.
    ///
    /// ```
    /// use oncekey::Profile;
    ///
    /// let error = Profile::from_toml("id = 'acme'\n[key]\nlifetime = 'for ever'").unwrap_err();
    /// assert_eq!(error.field(), "key.lifetime");
    /// let error = Profile::from_toml("{\"id\": \"acme\"}").unwrap_err(); // JSON
    /// assert_eq!(error.field(), "");
    /// ```
    pub fn field(&self) -> &str {
        &self.field
    }

    pub(super) fn new(text: &str, at: usize, field: String, problem: String) -> Self {
        Self { line: line_at(text, at), field, problem }
    }

    pub(super) fn of_toml(text: &str, mut error: toml::de::Error) -> Self {
        let line = error.span().map_or(1, |span| line_at(text, span.start));
        let problem = error.message().lines().next().unwrap_or_default().to_owned();
        // Without its input the error prints the tables it is in, which it gives no other way.
        error.set_input(None);
        let shown = error.to_string();
        let within = shown.rsplit_once("in `").and_then(|(_, rest)| rest.split('`').next()).unwrap_or_default();
        let named = ["unknown field `", "missing field `"]
            .iter()
            .find_map(|start| problem.strip_prefix(start)?.split('`').next())
            .filter(|name| within.rsplit('.').next() != Some(*name));
        let field = [within, named.unwrap_or_default()];
        let field = field.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".");
        Self { line, field, problem }
    }
}

fn line_at(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}
