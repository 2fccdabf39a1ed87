//! The Markdown of our own pages as HTML: headings, paragraphs, lists, tables, code, links,
//! emphasis.
//!
//! Only what `deploy/runbooks` and `deploy/guide` use, since no text from outside comes here: a
//! crate would bring a parser of the whole language. All text is escaped, so nothing but these
//! elements can come out.

use super::html::escape;
use std::fmt::Write;

/// Where a link leads on this server; `None` of one that leads nowhere here, whose text remains.
pub type LinkOf<'l> = &'l dyn Fn(&str) -> Option<String>;

/// A text as HTML.
pub fn html(text: &str, link: LinkOf<'_>) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = String::new();
    blocks(&lines, link, &mut out);
    out
}

/// The id of a heading, by which links name it.
fn slug(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Whether an item is numbered, and the width of its mark; `None` of a line that begins no item.
fn item(line: &str) -> Option<(bool, usize)> {
    if line.starts_with("* ") {
        return Some((false, 2));
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let numbered = (1..4).contains(&digits) && line[digits..].starts_with(". ");
    numbered.then_some((true, digits + 2))
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|b| *b == b'#').count();
    let text = line[level..].strip_prefix(' ')?;
    (1..=4).contains(&level).then_some((level, text))
}

/// Whether a line ends the paragraph above it.
fn interrupts(line: &str) -> bool {
    let begins = ["```", "* ", "1. ", "|", "<!--"];
    line.trim().is_empty() || heading(line).is_some() || begins.iter().any(|b| line.starts_with(b))
}

fn blocks(lines: &[&str], link: LinkOf<'_>, out: &mut String) {
    let mut at = 0;
    while let Some(&line) = lines.get(at) {
        let rest = &lines[at..];
        at += if line.trim().is_empty() || line.starts_with("<!--") {
            1
        } else if line.starts_with("```") {
            fenced(rest, out)
        } else if line.starts_with("    ") {
            indented(rest, out)
        } else if let Some((level, text)) = heading(line) {
            let (id, text) = (slug(text), inline(text, link));
            let _ = write!(out, "<h{level} id=\"{}\">{text}</h{level}>", escape(&id));
            1
        } else if line.starts_with('|') {
            table(rest, link, out)
        } else if let Some((numbered, _)) = item(line) {
            list(rest, numbered, link, out)
        } else {
            let end = rest.iter().skip(1).position(|l| interrupts(l));
            let end = end.map_or(rest.len(), |i| i + 1);
            let _ = write!(out, "<p>{}</p>", inline(&rest[..end].join("\n"), link));
            end
        };
    }
}

/// Code between fences; answers how many lines it takes.
fn fenced(lines: &[&str], out: &mut String) -> usize {
    let end = lines.iter().skip(1).position(|l| l.starts_with("```"));
    let end = end.map_or(lines.len(), |i| i + 1);
    code(&lines[1..end].join("\n"), out);
    end + 1
}

fn indented(lines: &[&str], out: &mut String) -> usize {
    let ends = |l: &&str| !l.starts_with("    ") && !l.trim().is_empty();
    let end = lines.iter().position(ends).unwrap_or(lines.len());
    let text: Vec<&str> = lines[..end]
        .iter()
        .map(|l| l.get(4..).unwrap_or(""))
        .collect();
    code(text.join("\n").trim_end(), out);
    end
}

fn code(text: &str, out: &mut String) {
    let _ = write!(out, "<pre><code>{}</code></pre>", escape(text));
}

fn table(lines: &[&str], link: LinkOf<'_>, out: &mut String) -> usize {
    let end = lines.iter().position(|l| !l.starts_with('|'));
    let end = end.unwrap_or(lines.len());
    out.push_str("<div class=scroll><table>");
    for (i, line) in lines[..end].iter().enumerate().filter(|(i, _)| *i != 1) {
        let cell = if i == 0 { "th" } else { "td" };
        out.push_str("<tr>");
        for text in cells(line) {
            let _ = write!(out, "<{cell}>{}", inline(text.trim(), link));
        }
    }
    out.push_str("</table></div>");
    end
}

/// The cells of a row; a bar in code or behind a backslash is text.
fn cells(line: &str) -> Vec<&str> {
    let line = line.trim().trim_start_matches('|');
    let line = line.strip_suffix('|').unwrap_or(line);
    let (mut cells, mut begin, mut in_code, mut escaped) = (Vec::new(), 0, false, false);
    for (i, c) in line.char_indices() {
        match c {
            '`' => in_code = !in_code,
            '|' if !in_code && !escaped => {
                cells.push(&line[begin..i]);
                begin = i + 1;
            }
            _ => {}
        }
        escaped = c == '\\';
    }
    cells.push(&line[begin..]);
    cells
}

fn list(lines: &[&str], numbered: bool, link: LinkOf<'_>, out: &mut String) -> usize {
    let tag = if numbered { "ol" } else { "ul" };
    let _ = write!(out, "<{tag}>");
    let mut at = 0;
    while let Some((_, width)) = lines
        .get(at)
        .and_then(|l| item(l))
        .filter(|i| i.0 == numbered)
    {
        let mut content = vec![&lines[at][width..]];
        at += 1;
        while let Some(&line) = lines.get(at) {
            let indent = line.len() - line.trim_start_matches(' ').len();
            let next = lines[at..].iter().find(|l| !l.trim().is_empty());
            let goes_on = match line.trim().is_empty() {
                true => next.is_some_and(|l| l.starts_with("  ")),
                false => indent >= 2 || !interrupts(line) && item(line).is_none(),
            };
            // A line without indent goes on with the paragraph above it only.
            if !goes_on || indent < 2 && !line.is_empty() && lines[at - 1].trim().is_empty() {
                break;
            }
            content.push(&line[indent.min(width)..]);
            at += 1;
        }
        let mut inner = String::new();
        blocks(&content, link, &mut inner);
        let one = inner
            .strip_prefix("<p>")
            .filter(|p| p.matches("<p>").count() == 0);
        let one = one.map(|p| p.replacen("</p>", "", 1));
        let _ = write!(out, "<li>{}", one.as_ref().unwrap_or(&inner));
        let blank = lines[at..]
            .iter()
            .take_while(|l| l.trim().is_empty())
            .count();
        let more = lines.get(at + blank).and_then(|l| item(l));
        if more.is_some_and(|i| i.0 == numbered) {
            at += blank;
        }
    }
    let _ = write!(out, "</{tag}>");
    at
}

/// The text of a paragraph.
fn inline(text: &str, link: LinkOf<'_>) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(c) = rest.chars().next() {
        let (html, taken) = marked(rest, link).unwrap_or_else(|| {
            let escaped = rest.starts_with("\\|");
            let shown = if escaped { "|" } else { &rest[..c.len_utf8()] };
            (
                escape(shown).to_string(),
                shown.len() + usize::from(escaped),
            )
        });
        out.push_str(&html);
        rest = &rest[taken..];
    }
    out
}

/// Code, emphasis or a link at the begin of a text, and its bytes; `None` of plain text.
fn marked(text: &str, link: LinkOf<'_>) -> Option<(String, usize)> {
    let between = |open: &str, close: &str| {
        let inside = text.strip_prefix(open)?;
        let end = inside.find(close).filter(|end| *end > 0)?;
        Some((&inside[..end], open.len() + end + close.len()))
    };
    if let Some((code, taken)) = between("`", "`") {
        return Some((format!("<code>{}</code>", escape(code)), taken));
    }
    if let Some((strong, taken)) = between("**", "**") {
        return Some((format!("<b>{}</b>", inline(strong, link)), taken));
    }
    if let Some((soft, taken)) = between("*", "*")
        && soft.trim() == soft
    {
        return Some((format!("<i>{}</i>", inline(soft, link)), taken));
    }
    let picture = usize::from(text.starts_with("!["));
    let inside = text[picture..].strip_prefix('[')?;
    let (label, after) = inside.split_once("](")?;
    let (target, _) = after.split_once(')')?;
    if label.contains('[') {
        return None;
    }
    let taken = picture + 1 + label.len() + 2 + target.len() + 1;
    let shown = inline(label, link);
    Some(match link(target).filter(|_| picture == 0) {
        Some(address) => (
            format!("<a href=\"{}\">{shown}</a>", escape(&address)),
            taken,
        ),
        None => (shown, taken),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str) -> String {
        html(text, &|target| {
            target
                .strip_suffix(".md")
                .map(|name| format!("/runbooks/{name}"))
        })
    }

    #[test]
    fn what_the_pages_use_becomes_html() {
        let cases = [
            (
                "# A `b` & c",
                "<h1 id=\"a-b--c\">A <code>b</code> &amp; c</h1>",
            ),
            ("one\ntwo\n\nthree", "<p>one\ntwo</p><p>three</p>"),
            ("* a\n  b\n* c", "<ul><li>a\nb<li>c</ul>"),
            ("1. a\n2. b\n\nc", "<ol><li>a<li>b</ol><p>c</p>"),
            (
                "1. a:\n\n   ```sh\n   x <y\n   ```\n2. b",
                "<ol><li>a:<pre><code>x &lt;y</code></pre><li>b</ol>",
            ),
            ("text:\n* a\n", "<p>text:</p><ul><li>a</ul>"),
            ("    code *x*\n", "<pre><code>code *x*</code></pre>"),
            (
                "see [X](X.md), [Y](../y) and **z** or *w*, 2 * 3",
                "<p>see <a href=\"/runbooks/X\">X</a>, Y and <b>z</b> or <i>w</i>, 2 * 3</p>",
            ),
            (
                "| a | b |\n|---|---|\n| `x|y` | 1 \\| 2 |\n",
                "<div class=scroll><table><tr><th>a<th>b<tr><td><code>x|y</code><td>1 | 2</table></div>",
            ),
            ("<script>", "<p>&lt;script&gt;</p>"),
        ];
        for (text, wanted) in cases {
            assert_eq!(rendered(text), wanted, "{text}");
        }
    }
}
