// Examples of the values of each kind, for error messages.

import Matching
import Policies

extension ValueKind {
    /// An example as an indefinite phrase: `a size such as 64KiB`.
    var example: String {
        switch self {
        case .boolean: "true or false"
        case .integer: "a whole number"
        case .word(let word, or: .integer): "\(ValueKind.integer(0...0).example) or '\(word)'"
        case .word(let word, or: let other): "\(other.example), or '\(word)'"
        case .choice(let words): words.count == 1 ? "the word \(words[0])" : "one of \(words.joined(separator: ", "))"
        case .duration, .lifetime: "a duration such as 5s"
        case .shift: "a duration such as -1h"
        case .size: "a size such as 64KiB"
        case .share: "a percentage such as 20%"
        case .weighted: "a status, or a mapping such as { 200: 90%, 503: 10% }"
        case .latency, .distribution: "a duration or a range such as 200ms..900ms"
        case .rate: "a size in each second such as 64KiB/s"
        case .permissions: "octal permissions such as \"0660\""
        case .text: "a text"
        case .path, .demoFile: "a path"
        case .logTarget: "stdout, stderr, off or a path"
        case .address: "an address such as localhost:8080"
        case .listener: "an address such as localhost:8080 or https://localhost:8443"
        case .client: "a rule such as loopback or 192.168.0.0/16"
        case .baseURL: "a URL such as https://api.example.com"
        case .collector: "a URL such as http://localhost:4318"
        case .upstreamProxy: "none, env, or a URL such as http://proxy.example:3128"
        case .endpointPath: "a path such as /users/:id"
        case .target: "a target such as /v2/people/:id?expand=:expand"
        case .tree: "any value"
        case .list(let element): "a list of \(element.plural)"
        case .oneOrMore(let element): "\(element.example), or a list of them"
        case .map(let keys, _): "a mapping such as \(keys.example)"
        case .mappingRule: "a mapping such as { name: user.name.first }"
        case .section, .shorthand, .rules: "a mapping of keys"
        case .sections: "a list of mappings"
        }
    }

    /// An example of several values, for lists: `paths`.
    private var plural: String {
        switch self {
        case .text: "texts"
        case .path: "paths"
        case .choice(let words): "words (\(words.joined(separator: ", ")))"
        case .client: "rules such as loopback or 192.168.0.0/16"
        default: "values, each \(example)"
        }
    }
}

extension MapKey {
    /// An example of a mapping in flow style.
    var example: String {
        switch self {
        case .fieldName: "{ User-Agent: my-app }"
        case .queryName: "{ per_page: 50 }"
        case .valueName: "{ token: body.token }"
        case .status: "{ 404: 1m }"
        case .parameter: "{ expand: none }"
        case .percentile: "{ 50: 80ms, 99: 1s }"
        case .profile: "{ slow: { latency: 2s } }"
        case .logModule: "{ download: debug }"
        }
    }

    /// The fields that the daemon makes itself: a configuration that set them would break the framing or the routing.
    private static let reserved: Set<String> = [
        "connection", "content-length", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding",
        "upgrade",
    ]

    func check(_ key: String) throws(ScalarProblem) {
        switch self {
        case .fieldName:
            guard TextRule.isToken(key) else {
                throw ScalarProblem("contains '\(key)', which is not a field name; remove spaces and colons")
            }
            if key.lowercased() == "host" {
                throw ScalarProblem("must not contain 'Host'; use the service's 'host' and 'base_url'")
            }
            if Self.reserved.contains(key.lowercased()) {
                throw ScalarProblem("must not contain '\(key)', which the daemon sets itself; remove it")
            }
        case .queryName:
            guard !key.isEmpty else { throw ScalarProblem("contains an empty name; name the query item") }
        case .parameter:
            guard !key.isEmpty else { throw ScalarProblem("contains an empty name; name the parameter") }
        case .percentile:
            guard key.utf8.allSatisfy({ $0 == 46 || ($0 >= 48 && $0 <= 57) }), let value = Double(key), value <= 100
            else {
                throw ScalarProblem("contains '\(key)', which is not a percentile; write a number from 0 to 100")
            }
        case .profile: _ = try TextRule.word.check(key)
        case .logModule:
            guard LogModule(rawValue: key) == nil else { return }
            let known = LogModule.allCases.map(\.rawValue)
            let help = Suggestions.nearest(to: key, among: known).map { "did you mean '\($0)'?" }
            throw ScalarProblem(
                "contains '\(key)', which is no module of the log; \(help ?? "there are \(LogModule.names)")"
            )
        case .valueName:
            guard PlaceholderText.isName(key) else {
                throw ScalarProblem("contains '\(key)', which is not a name; use letters, digits, '_' and '-'")
            }
        case .status:
            guard key.utf8.count == 3, let status = Digits.parse(key), (200...599).contains(status) else {
                throw ScalarProblem("contains '\(key)', which is not a final status; write 200 to 599")
            }
        }
    }
}
