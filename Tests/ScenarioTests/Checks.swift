// What scenarios share: service lines for configurations, how a refused one ends, Cache-Status taken apart, and a rest
// that is longer than a second of age.

import Foundation
import TestSupport
import Testing

/// The lines of one service under `services:`, matched by the prefix of its name.
func service(_ name: String, _ base: String, _ more: String...) -> String {
    let lines = ["- name: \(name)", "  match: { prefix: /\(name) }", "  base_url: \(base)"] + more.map { "  \($0)" }
    return lines.map { "  \($0)\n" }.joined()
}

/// A configuration of services only.
func services(_ services: String...) -> DaemonSettings {
    DaemonSettings("services:\n" + services.joined())
}

/// How `check` and `serve` end that refuse their file: the unit starts no daemon again that ends with 78
/// (`RestartPreventExitStatus=`).
func refused(_ verb: String) -> ProcessEnd { .exited(verb == "serve" ? 78 : 1) }

/// Lets real time pass; for lifetimes, which count in whole seconds.
func rest(_ seconds: Double) {
    usleep(UInt32(seconds * 1_000_000))
}

/// Asks again until `holds`, for two minutes at most; says whether it held.
func eventually(_ seconds: Double = 120, _ holds: () throws -> Bool) rethrows -> Bool {
    try blockUntil(seconds, holds)
}

/// One member of a Cache-Status field (RFC 9211).
struct CacheStatusMember: Equatable, CustomStringConvertible {
    var name = ""
    var parameters: [String: String] = [:]
    var description: String { "\(name) \(parameters)" }

    init?(_ value: String?) {
        guard let value else { return nil }
        let parts = value.split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) }
        guard let first = parts.first else { return nil }
        name = first
        for part in parts.dropFirst() {
            let pair = part.split(separator: "=", maxSplits: 1).map(String.init)
            guard let key = pair.first else { continue }
            parameters[key] = pair.count > 1 ? pair[1].trimmingCharacters(in: ["\""]) : ""
        }
    }

    var isHit: Bool { parameters["hit"] != nil }
    var forwarded: String? { parameters["fwd"] }
    var detail: String? { parameters["detail"] }
    var isStored: Bool { parameters["stored"] != nil }
    var isCollapsed: Bool { parameters["collapsed"] != nil }
    var timeToLive: Int? { parameters["ttl"].flatMap { Int($0) } }
}

extension RawResponse {
    /// The member that the daemon under test added, which is the last one.
    var cacheStatus: CacheStatusMember? {
        CacheStatusMember(head.all("Cache-Status").last?.split(separator: ",").last.map(String.init))
    }

    /// A problem document (RFC 9457) as a dictionary, nil when it is none.
    var problem: [String: Any]? {
        guard field("Content-Type")?.hasPrefix("application/problem+json") == true else { return nil }
        return try? JSONSerialization.jsonObject(with: Data(body)) as? [String: Any]
    }
}

/// Expects a problem document of this status that says what to do.
func expectProblem(_ response: RawResponse, _ statuses: Int..., at location: SourceLocation = #_sourceLocation) {
    #expect(statuses.contains(response.status), "\(response.head) \(response.text)", sourceLocation: location)
    #expect((response.problem?["title"] as? String)?.isEmpty == false, "\(response.text)", sourceLocation: location)
    #expect((response.problem?["detail"] as? String)?.isEmpty == false, "\(response.text)", sourceLocation: location)
}

/// Raises the limit of open files as far as this process may, for scenarios with many connections.
func allowManyFiles() {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}
