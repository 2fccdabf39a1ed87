//! Converts the Markdown of our own pages to HTML.
//!
//! The only input is `deploy/runbooks` and `deploy/guide`, no text from outside. HTML in a text is
//! nevertheless shown as text. A picture becomes its caption, because no page may need another
//! server.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd, html::push_html};

/// Returns the target of a link on this server. For `None` only the text of the link remains.
pub type LinkOf<'l> = &'l dyn Fn(&str) -> Option<String>;

/// Converts a text to HTML.
pub fn html(text: &str, link: LinkOf<'_>) -> String {
    // Whether the last link has a target; links do not nest.
    let mut leads = false;
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
    let events = events.filter_map(|(mut event, range)| {
        match &mut event {
            Event::Start(Tag::Heading { id, .. }) => *id = Some(slug(&text[range]).into()),
            Event::Start(Tag::Link { dest_url, .. }) => {
                let address = link(dest_url);
                leads = address.is_some();
                *dest_url = address?.into();
            }
            Event::End(TagEnd::Link) if !leads => return None,
            Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => return None,
            Event::Start(Tag::CodeBlock(kind)) => *kind = CodeBlockKind::Indented,
            Event::Start(Tag::Table(_)) => event = Event::Html("<div class=scroll><table>".into()),
            Event::End(TagEnd::Table) => event = Event::Html("</tbody></table></div>\n".into()),
            Event::Html(raw) | Event::InlineHtml(raw) if raw.starts_with("<!--") => return None,
            Event::Html(raw) | Event::InlineHtml(raw) => event = Event::Text(raw.clone()),
            _ => {}
        }
        Some(event)
    });
    let mut out = String::new();
    push_html(&mut out, events);
    out
}

/// The id of a heading, which links use.
fn slug(heading: &str) -> String {
    let kept = heading.trim_matches(['#', ' ', '\n']).to_lowercase();
    let kept = kept
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
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
                "<h1 id=\"a-b--c\">A <code>b</code> &amp; c</h1>\n",
            ),
            (
                "* a\n\n  ```sh\n  x <y\n  ```",
                "<ul>\n<li>\n<p>a</p>\n<pre><code>x &lt;y\n</code></pre>\n</li>\n</ul>\n",
            ),
            (
                "see [X](X.md), [Y](../y) and ![z](z.png)",
                "<p>see <a href=\"/runbooks/X\">X</a>, Y and z</p>\n",
            ),
            (
                "| a | b |\n|---|--:|\n| `x` | 1 \\| 2 |\n",
                "<div class=scroll><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody>\n\
                 <tr><td><code>x</code></td><td>1 | 2</td></tr>\n</tbody></table></div>\n",
            ),
        ];
        for (text, wanted) in cases {
            assert_eq!(rendered(text), wanted, "{text}");
        }
    }

    #[test]
    fn html_and_foreign_addresses_do_not_pass() {
        let cases = [
            ("<script>", "&lt;script&gt;"),
            ("a <b>c</b>", "<p>a &lt;b&gt;c&lt;/b&gt;</p>\n"),
            ("a <!-- b -->", "<p>a </p>\n"),
            ("[a](javascript:b) <https://c>", "<p>a https://c</p>\n"),
        ];
        for (text, wanted) in cases {
            assert_eq!(rendered(text), wanted, "{text}");
        }
    }
}
