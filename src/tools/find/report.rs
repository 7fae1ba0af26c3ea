//! One page with what an experiment did and found: a plot, its steps, and lines for the file.

use std::fmt::Write;

use crate::status::views::{Find, Plain};

/// Draws the plot, in the live page as well.
const PLOT: &str = include_str!("../../admin/page/findplot.js");

const STYLE: &str = include_str!("report.css");

/// The whole page, which needs no other file.
pub(super) fn html(find: &Find) -> String {
    let title = format!("What {} can take", find.origin);
    let (title, plot) = (escaped(&title), data(find));
    let mut facts = vec![find.slo.to_string()];
    facts.extend(find.watch.iter().map(ToString::to_string));
    facts.extend(find.only.as_ref().map(|it| format!("only {it}")));
    facts.push(format!(
        "began {}, {} requests, started by {}",
        find.began, find.requests, find.by
    ));
    let facts = facts.join("; ");
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <h1>{title}</h1>\n<p>{}</p>\n",
        escaped(&facts)
    );
    put_lines(&mut page, "result", find.lines.iter());
    page.push_str("<figure class=\"experiment\"></figure>\n");
    put_lines(&mut page, "steps", find.steps.iter().map(|it| &it.line));
    // Writing to a string does not fail.
    let _ = write!(
        page,
        "<script type=\"application/json\" id=\"data\">{plot}</script>\n\
         <script type=\"module\">\n{PLOT}\n\
         const text = document.getElementById(\"data\").textContent;\n\
         document.querySelector(\"figure\").append(findPlot(JSON.parse(text), 800));\n\
         </script>\n</body>\n</html>\n"
    );
    page
}

fn put_lines<'a>(page: &mut String, class: &str, lines: impl Iterator<Item = &'a Plain>) {
    let _ = write!(page, "<pre class=\"{class}\">");
    for line in lines {
        let _ = writeln!(page, "{}", escaped(line.as_str()));
    }
    page.push_str("</pre>\n");
}

/// JSON that ends no script.
fn data(find: &Find) -> String {
    let json = serde_json::to_string(find).unwrap_or_default();
    json.replace('<', "\\u003c")
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::views::FindStep;

    #[test]
    fn names_and_lines_are_text_and_nothing_else() {
        let find = Find {
            origin: Plain::new("</script><b>\"&"),
            steps: vec![FindStep {
                line: Plain::new("50r/s  ok  <i>"),
                ..FindStep::default()
            }],
            lines: vec![Plain::new("rate = \"50r/s\"")],
            ..Find::default()
        };
        let page = html(&find);
        assert_eq!(page.matches("</script>").count(), 2, "{page}");
        assert!(!page.contains("<b>") && !page.contains("<i>"), "{page}");
        assert!(page.contains("<title>What &lt;/script&gt;&lt;b&gt;&quot;&amp; can take</title>"));
        assert!(page.contains("50r/s  ok  &lt;i&gt;") && page.contains("rate = &quot;50r/s&quot;"));
        assert!(!page.contains("src=") && !page.contains("href="), "{page}");
    }
}
