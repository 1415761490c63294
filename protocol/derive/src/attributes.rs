//! What the attributes say, checked one by one.

use proc_macro2::Span;
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, Lit, RangeLimits, Result, UnOp};

/// A range of versions with both ends known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    pub(crate) min: i16,
    pub(crate) max: i16,
}

/// A range as it is written: an end may be open.
pub(crate) struct OpenRange {
    min: Option<i16>,
    max: Option<i16>,
    span: Span,
}

impl OpenRange {
    /// Closes the open ends with those of `outer`, and refuses a range that is not inside it.
    pub(crate) fn within(&self, outer: Range, what: &str) -> Result<Range> {
        let range = Range { min: self.min.unwrap_or(outer.min), max: self.max.unwrap_or(outer.max) };
        if range.min > range.max {
            return Err(Error::new(self.span, format!("no version is in {}..={}", range.min, range.max)));
        }
        if range.min < outer.min || range.max > outer.max {
            return Err(Error::new(
                self.span,
                format!(
                    "versions {}..={} are outside {what}, {}..={}; leave an end open to mean its end",
                    range.min, range.max, outer.min, outer.max
                ),
            ));
        }
        Ok(range)
    }

    /// Adds the one version that this is to `stable`, and refuses one that does not follow or precede it.
    fn beside(&self, stable: Range) -> Result<(Range, Option<i16>)> {
        match (self.min, self.max) {
            (Some(only), Some(max)) if only == max && only == stable.max + 1 => {
                Ok((Range { max: only, ..stable }, Some(only)))
            }
            (Some(only), Some(max)) if only == max && only == stable.min - 1 => {
                Ok((Range { min: only, ..stable }, Some(only)))
            }
            _ => Err(Error::new(
                self.span,
                format!(
                    "the unstable version is one directly after or before {}..={}: `unstable = {}`",
                    stable.min,
                    stable.max,
                    stable.max + 1
                ),
            )),
        }
    }
}

/// `#[message(…)]`.
pub(crate) struct MessageAttributes {
    pub(crate) key: Option<i16>,
    /// All versions, with the unstable one: what the fields' own are within.
    pub(crate) versions: Range,
    /// The versions without the unstable one.
    pub(crate) stable: Range,
    /// The version that needs the feature `unstable-protocol`: the one after the last or before the first.
    pub(crate) unstable: Option<i16>,
    /// The first flexible version.
    pub(crate) flexible: Option<i16>,
    pub(crate) response: Option<syn::Path>,
    /// The schema's name, if it is not the struct's.
    pub(crate) name: Option<syn::LitStr>,
}

impl MessageAttributes {
    pub(crate) fn parse(attributes: &[Attribute], name: &syn::Ident) -> Result<Self> {
        let (mut key, mut versions, mut unstable, mut flexible) = (None, None, None, None);
        let (mut response, mut kafkas) = (None, None);
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("message")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("key") {
                    once(&mut key, &meta, |meta| meta.value()?.parse::<syn::LitInt>()?.base10_parse())
                } else if meta.path.is_ident("versions") {
                    once(&mut versions, &meta, open_range)
                } else if meta.path.is_ident("unstable") {
                    once(&mut unstable, &meta, open_range)
                } else if meta.path.is_ident("flexible") {
                    once(&mut flexible, &meta, open_range)
                } else if meta.path.is_ident("response") {
                    once(&mut response, &meta, |meta| meta.value()?.parse::<syn::Path>())
                } else if meta.path.is_ident("name") {
                    once(&mut kafkas, &meta, |meta| meta.value()?.parse::<syn::LitStr>())
                } else {
                    Err(meta.error("a message has `key`, `versions`, `unstable`, `flexible`, `response` and `name`"))
                }
            })?;
        }

        let Some(versions) = versions else {
            return Err(Error::new(name.span(), "the versions are missing: #[message(versions = 0..=3)]"));
        };
        let (Some(min), Some(max)) = (versions.min, versions.max) else {
            return Err(Error::new(versions.span, "a message's versions have two ends: `versions = 0..=3`"));
        };
        let stable = versions.within(Range { min, max }, "themselves")?;
        let (versions, unstable) = match unstable {
            Some(range) => range.beside(stable)?,
            None => (stable, None),
        };
        let flexible = match flexible {
            Some(OpenRange { min: Some(first), max: None, .. }) => Some(first),
            Some(range) => return Err(Error::new(range.span, "flexible versions have no end: `flexible = 2..`")),
            None => None,
        };
        if let (Some(response), None) = (&response, key) {
            return Err(Error::new(response.span(), "a request needs the API's number: `key = 1`"));
        }
        Ok(Self { key, versions, stable, unstable, flexible, response, name: kafkas })
    }
}

/// `#[field(…)]`, as it is written.
#[derive(Default)]
pub(crate) struct FieldAttributes {
    pub(crate) versions: Option<OpenRange>,
    pub(crate) nullable: Option<OpenRange>,
    pub(crate) tag: Option<syn::LitInt>,
    pub(crate) ignorable: Option<()>,
    pub(crate) default: Option<Expr>,
    pub(crate) records: Option<()>,
}

impl FieldAttributes {
    pub(crate) fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut field = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("field")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("versions") {
                    once(&mut field.versions, &meta, open_range)
                } else if meta.path.is_ident("nullable") {
                    once(&mut field.nullable, &meta, open_range)
                } else if meta.path.is_ident("tag") {
                    once(&mut field.tag, &meta, |meta| meta.value()?.parse())
                } else if meta.path.is_ident("ignorable") {
                    once(&mut field.ignorable, &meta, |_| Ok(()))
                } else if meta.path.is_ident("default") {
                    once(&mut field.default, &meta, |meta| meta.value()?.parse())
                } else if meta.path.is_ident("records") {
                    once(&mut field.records, &meta, |_| Ok(()))
                } else {
                    Err(meta.error("a field has `versions`, `nullable`, `tag`, `ignorable`, `default` and `records`"))
                }
            })?;
        }
        Ok(field)
    }
}

/// Fills `slot`, or refuses to do so twice.
fn once<T>(
    slot: &mut Option<T>,
    meta: &ParseNestedMeta<'_>,
    parse: impl FnOnce(&ParseNestedMeta<'_>) -> Result<T>,
) -> Result<()> {
    if slot.is_some() {
        return Err(meta.error("this is said twice"));
    }
    *slot = Some(parse(meta)?);
    Ok(())
}

/// `4..=18`, `12..`, `..=14` or `3`.
fn open_range(meta: &ParseNestedMeta<'_>) -> Result<OpenRange> {
    let expr: Expr = meta.value()?.parse()?;
    let span = expr.span();
    match expr {
        Expr::Range(range) => {
            if range.end.is_some() && matches!(range.limits, RangeLimits::HalfOpen(_)) {
                return Err(Error::new(span, "the last version is included: write `..=`"));
            }
            let min = range.start.as_deref().map(version).transpose()?;
            let max = range.end.as_deref().map(version).transpose()?;
            Ok(OpenRange { min, max, span })
        }
        expr => {
            let only = version(&expr)?;
            Ok(OpenRange { min: Some(only), max: Some(only), span })
        }
    }
}

fn version(expr: &Expr) -> Result<i16> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse(),
        expr => Err(Error::new(expr.span(), "a version is a number")),
    }
}

/// Whether `expr` is the word `null`.
pub(crate) fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Path(path) if path.path.is_ident("null"))
}

/// The text of a string literal.
pub(crate) fn text(expr: &Expr) -> Option<&syn::LitStr> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text),
        _ => None,
    }
}

/// Whether `expr` could be a number: a literal, perhaps negative, or the path of a constant.
pub(crate) fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Int(_) | Lit::Float(_), .. }) => true,
        Expr::Unary(unary) => matches!(unary.op, UnOp::Neg(_)) && is_number(&unary.expr),
        Expr::Path(_) => !is_null(expr),
        _ => false,
    }
}
