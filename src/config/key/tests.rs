use super::*;

#[test]
fn fixed_names_are_read_and_written_back() {
    for (name, variable) in FIXED {
        assert_eq!(name.parse(), Ok(variable.clone()));
        assert_eq!(variable.to_string(), name);
    }
}

#[test]
fn a_wrong_template_says_what_is_allowed() {
    let unknown = |name: &str| KeyError::Unknown(name.to_owned());
    let cases = [
        ("", KeyError::Empty),
        ("$", KeyError::LoneDollar),
        ("a$ b", KeyError::LoneDollar),
        ("$$host", KeyError::LoneDollar),
        ("${}", KeyError::LoneDollar),
        ("${host", KeyError::Unclosed("host".to_owned())),
        ("$hosts", unknown("hosts")),
        ("$http_", unknown("http_")),
        ("${http_x-y}", unknown("http_x-y")),
        ("$binary_remote_addr", KeyError::BinaryRemoteAddr),
    ];
    for (written, error) in cases {
        assert_eq!(written.parse::<KeyTemplate>(), Err(error), "{written}");
    }
    let told = unknown("hosts").to_string();
    let begin = "$hosts is not a variable here; the variables are $remote_addr, $host, ";
    assert!(told.starts_with(begin), "{told}");
    assert!(told.ends_with(", $path_NAME, $jwt_NAME_CLAIM"), "{told}");
}

#[test]
fn the_page_describes_the_variables_that_messages_name() {
    let page = include_str!("../../../docs/configuration.md");
    let (_, section) = page.split_once("\n### Key variables\n").unwrap();
    let rows = section.lines().skip_while(|line| !line.starts_with('|'));
    let rows = rows.take_while(|line| line.starts_with('|')).skip(2);
    let described: Vec<&str> = rows.filter_map(|row| row.split('`').nth(1)).collect();
    assert_eq!(described, allowed().split(", ").collect::<Vec<_>>());
}
