//! Tests of key templates.

use super::*;

#[test]
fn a_wrong_template_says_what_is_allowed() {
    let message = "$hosts".parse::<KeyTemplate>().unwrap_err().to_string();
    let begin = "$hosts is not a variable here; the variables are $remote_addr, $host, ";
    assert!(message.starts_with(begin), "{message}");
    let end = ", $path_NAME, $jwt_NAME_CLAIM";
    assert!(message.ends_with(end), "{message}");
}

#[test]
fn the_page_about_keys_describes_the_variables_that_messages_name() {
    let page = include_str!("../../../docs/reference/keys.md");
    let (_, section) = page.split_once("\n## Key variables\n").unwrap();
    let rows = section.lines().skip_while(|line| !line.starts_with('|'));
    let rows = rows.take_while(|line| line.starts_with('|')).skip(2);
    let described: Vec<&str> = rows.filter_map(|row| row.split('`').nth(1)).collect();
    assert_eq!(described, list_variables().split(", ").collect::<Vec<_>>());
}
