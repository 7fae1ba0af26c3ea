use super::*;

#[test]
fn templates_are_read_and_written_back() {
    let host = || Part::Variable(Variable::Host);
    let text = |text: &str| Part::Text(text.to_owned());
    let cases = [
        ("$host", "$host", vec![host()]),
        ("${host}", "$host", vec![host()]),
        ("all", "all", vec![text("all")]),
        ("${host}s", "${host}s", vec![host(), text("s")]),
        ("$host$host", "$host$host", vec![host(), host()]),
        ("é${HOST}é", "é$hosté", vec![text("é"), host(), text("é")]),
        (
            "$host:$http_X_Api_Key",
            "$host:$http_x_api_key",
            vec![
                host(),
                text(":"),
                Part::Variable(Variable::Header("x-api-key".to_owned())),
            ],
        ),
        (
            "$cookie_SID$Arg_Page",
            "$cookie_SID$arg_Page",
            vec![
                Part::Variable(Variable::Cookie("SID".to_owned())),
                Part::Variable(Variable::Arg("Page".to_owned())),
            ],
        ),
    ];
    for (written, shown, parts) in cases {
        let key = written.parse::<KeyTemplate>().unwrap();
        assert_eq!(key.parts(), parts, "{written}");
        assert_eq!(key.to_string(), shown);
        assert_eq!(shown.parse(), Ok(key));
    }
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
    assert!(told.ends_with(", $path_NAME and $jwt_NAME_CLAIM"), "{told}");
}

#[test]
fn the_page_describes_the_variables_that_messages_name() {
    let page = include_str!("../../../docs/configuration.md");
    let (_, section) = page.split_once("\n### Key variables\n").unwrap();
    let rows = section.lines().skip_while(|line| !line.starts_with('|'));
    let rows = rows.take_while(|line| line.starts_with('|')).skip(2);
    let described: Vec<&str> = rows.filter_map(|row| row.split('`').nth(1)).collect();
    assert_eq!(described, Allowed::names().collect::<Vec<_>>());
}
