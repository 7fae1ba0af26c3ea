# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_drip_global_optspecs
    string join \n c/config= h/help V/version
end

function __fish_drip_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_drip_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_drip_using_subcommand
    set -l cmd (__fish_drip_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c drip -n "__fish_drip_needs_command" -s c -l config -d 'The configuration file [default: gateway.toml]' -r -F
complete -c drip -n "__fish_drip_needs_command" -s h -l help -d 'Print help'
complete -c drip -n "__fish_drip_needs_command" -s V -l version -d 'Print version'
complete -c drip -n "__fish_drip_needs_command" -f -a "run" -d 'Run the gateway (the default)'
complete -c drip -n "__fish_drip_needs_command" -f -a "demo" -d 'Show how the gateway smooths bursts, or stops a flood (--scene fair): runs the gateway, a sample origin and clients in one process'
complete -c drip -n "__fish_drip_needs_command" -f -a "init" -d 'Write a commented gateway.toml to start from; an existing file is not overwritten'
complete -c drip -n "__fish_drip_needs_command" -f -a "check" -d 'Validate the file, and print every problem found'
complete -c drip -n "__fish_drip_needs_command" -f -a "schema" -d 'Print the JSON Schema of a file, with which editors complete and check it'
complete -c drip -n "__fish_drip_needs_command" -f -a "import" -d 'Translate an nginx.conf or Ingress objects, and report each line that could not be translated'
complete -c drip -n "__fish_drip_needs_command" -f -a "simulate" -d 'Replay a trace or access log against the file: which requests would wait or be rejected'
complete -c drip -n "__fish_drip_needs_command" -f -a "advise" -d 'Recommend rate and burst from the traffic of access logs'
complete -c drip -n "__fish_drip_needs_command" -f -a "top" -d 'Show a gateway in a terminal every second; if the output is not a terminal, print it once'
complete -c drip -n "__fish_drip_needs_command" -f -a "find" -d 'Find the capacity of an origin: raise its rate on real traffic until the objective breaks, then restore the rate of the file'
complete -c drip -n "__fish_drip_needs_command" -f -a "health" -d 'Check whether a running gateway is ready (exit status 0) or not (1)'
complete -c drip -n "__fish_drip_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c drip -n "__fish_drip_using_subcommand run" -s c -l config -d 'The configuration file, as [FILE] names it' -r -F
complete -c drip -n "__fish_drip_using_subcommand run" -s h -l help -d 'Print help'
complete -c drip -n "__fish_drip_using_subcommand demo" -l scene -d 'Scene to show' -r -f -a "smooth\t'Bursts come in, an even stream goes out, until Ctrl-C'
fair\t'One client floods a backend and nine do not, first without `share`, then with it; 16 seconds'"
complete -c drip -n "__fish_drip_using_subcommand demo" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c drip -n "__fish_drip_using_subcommand init" -l origin -d 'The origin, such as `http://127.0.0.1:9000`' -r
complete -c drip -n "__fish_drip_using_subcommand init" -l from -d 'An nginx.conf to translate, or an access log to take the numbers from' -r -F
complete -c drip -n "__fish_drip_using_subcommand init" -s h -l help -d 'Print help'
complete -c drip -n "__fish_drip_using_subcommand check" -s c -l config -d 'The configuration file, as [FILE] names it' -r -F
complete -c drip -n "__fish_drip_using_subcommand check" -l all -d 'Print all settings in force, too'
complete -c drip -n "__fish_drip_using_subcommand check" -l json -d 'Print the problems as JSON, on standard output'
complete -c drip -n "__fish_drip_using_subcommand check" -s h -l help -d 'Print help'
complete -c drip -n "__fish_drip_using_subcommand schema" -s h -l help -d 'Print help'
complete -c drip -n "__fish_drip_using_subcommand import" -s h -l help -d 'Print help'
complete -c drip -n "__fish_drip_using_subcommand simulate" -s c -l config -d 'The configuration file [default: gateway.toml]' -r -F
complete -c drip -n "__fish_drip_using_subcommand simulate" -l plot -d 'Draw arrivals, waiting requests and departures over time' -r -F
complete -c drip -n "__fish_drip_using_subcommand simulate" -l format -d 'The format of the trace; combined is that of nginx and Apache, json that of drip and nginx [default: detected from the first lines]' -r -f -a "csv\t''
combined\t''
json\t''
haproxy\t''
caddy\t''
traefik\t''
alb\t''"
complete -c drip -n "__fish_drip_using_subcommand simulate" -l summary -d 'Print how many requests are delayed and rejected, and of which keys [default on a terminal]'
complete -c drip -n "__fish_drip_using_subcommand simulate" -l rows -d 'Print a line of CSV for each request [default into a pipe or file]'
complete -c drip -n "__fish_drip_using_subcommand simulate" -s h -l help -d 'Print help'
complete -c drip -n "__fish_drip_using_subcommand advise" -l key -d 'The key of a client, made of nginx\'s variables, as far as the log has them; a text without variables counts all requests together' -r
complete -c drip -n "__fish_drip_using_subcommand advise" -l zone -d 'For drip\'s own log: use the logged keys of this zone, and only the requests that it decided' -r
complete -c drip -n "__fish_drip_using_subcommand advise" -s c -l config -d 'A gateway.toml that has the zone; its key is used for any log' -r -F
complete -c drip -n "__fish_drip_using_subcommand advise" -l format -d 'The format of the logs; combined is that of nginx and Apache, json that of drip and nginx [default: detected from the first lines]' -r -f -a "csv\t''
combined\t''
json\t''
haproxy\t''
caddy\t''
traefik\t''
alb\t''"
complete -c drip -n "__fish_drip_using_subcommand advise" -s h -l help -d 'Print help'
complete -c drip -n "__fish_drip_using_subcommand top" -l once -d 'Print the state once as text, also in a terminal'
complete -c drip -n "__fish_drip_using_subcommand top" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c drip -n "__fish_drip_using_subcommand find" -l slo -d 'The objective of its responses, such as "p95<400ms, errors<0.5%": percentiles of the time to the response head ("p95 whole": to the last byte), and shares of errors, 4xx and 5xx' -r
complete -c drip -n "__fish_drip_using_subcommand find" -l from -d 'The first and lowest level: a rate such as 50r/s, or a number of concurrent requests such as 4' -r
complete -c drip -n "__fish_drip_using_subcommand find" -l to -d 'The highest level' -r
complete -c drip -n "__fish_drip_using_subcommand find" -l step -d 'The difference between two steps: 1% to 50%' -r
complete -c drip -n "__fish_drip_using_subcommand find" -l min-step -d 'The minimum duration of a good step: 1s to 1h' -r
complete -c drip -n "__fish_drip_using_subcommand find" -l confirm -d 'The duration for which the found level must hold: 1s to 1h' -r
complete -c drip -n "__fish_drip_using_subcommand find" -l wait -d 'The duration without waiting requests after which the search ends: 1s to 10m [default: 1m]' -r
complete -c drip -n "__fish_drip_using_subcommand find" -l admin -d 'The address of the gateway\'s admin port' -r
complete -c drip -n "__fish_drip_using_subcommand find" -l json -d 'Print the result as JSON, with all steps'
complete -c drip -n "__fish_drip_using_subcommand find" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c drip -n "__fish_drip_using_subcommand health" -s c -l config -d 'The configuration file [default: gateway.toml]' -r -F
complete -c drip -n "__fish_drip_using_subcommand health" -l live -d 'Check whether the process works, not whether it is ready: for checks that restart it'
complete -c drip -n "__fish_drip_using_subcommand health" -s h -l help -d 'Print help'
complete -c drip -n "__fish_drip_using_subcommand help; and not __fish_seen_subcommand_from run demo init check schema import simulate advise top find health help" -f -a "run" -d 'Run the gateway (the default)'
complete -c drip -n "__fish_drip_using_subcommand help; and not __fish_seen_subcommand_from run demo init check schema import simulate advise top find health help" -f -a "demo" -d 'Show how the gateway smooths bursts, or stops a flood (--scene fair): runs the gateway, a sample origin and clients in one process'
complete -c drip -n "__fish_drip_using_subcommand help; and not __fish_seen_subcommand_from run demo init check schema import simulate advise top find health help" -f -a "init" -d 'Write a commented gateway.toml to start from; an existing file is not overwritten'
complete -c drip -n "__fish_drip_using_subcommand help; and not __fish_seen_subcommand_from run demo init check schema import simulate advise top find health help" -f -a "check" -d 'Validate the file, and print every problem found'
complete -c drip -n "__fish_drip_using_subcommand help; and not __fish_seen_subcommand_from run demo init check schema import simulate advise top find health help" -f -a "schema" -d 'Print the JSON Schema of a file, with which editors complete and check it'
complete -c drip -n "__fish_drip_using_subcommand help; and not __fish_seen_subcommand_from run demo init check schema import simulate advise top find health help" -f -a "import" -d 'Translate an nginx.conf or Ingress objects, and report each line that could not be translated'
complete -c drip -n "__fish_drip_using_subcommand help; and not __fish_seen_subcommand_from run demo init check schema import simulate advise top find health help" -f -a "simulate" -d 'Replay a trace or access log against the file: which requests would wait or be rejected'
complete -c drip -n "__fish_drip_using_subcommand help; and not __fish_seen_subcommand_from run demo init check schema import simulate advise top find health help" -f -a "advise" -d 'Recommend rate and burst from the traffic of access logs'
complete -c drip -n "__fish_drip_using_subcommand help; and not __fish_seen_subcommand_from run demo init check schema import simulate advise top find health help" -f -a "top" -d 'Show a gateway in a terminal every second; if the output is not a terminal, print it once'
complete -c drip -n "__fish_drip_using_subcommand help; and not __fish_seen_subcommand_from run demo init check schema import simulate advise top find health help" -f -a "find" -d 'Find the capacity of an origin: raise its rate on real traffic until the objective breaks, then restore the rate of the file'
complete -c drip -n "__fish_drip_using_subcommand help; and not __fish_seen_subcommand_from run demo init check schema import simulate advise top find health help" -f -a "health" -d 'Check whether a running gateway is ready (exit status 0) or not (1)'
complete -c drip -n "__fish_drip_using_subcommand help; and not __fish_seen_subcommand_from run demo init check schema import simulate advise top find health help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
