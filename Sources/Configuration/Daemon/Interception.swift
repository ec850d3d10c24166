// Which tunnels the daemon reads, and whether they can be reached at all.

package import Policies

extension KeyTable {
    static let intercept = SectionDescriptor(
        name: "intercept",
        keys: [
            KeyDescriptor(
                "hosts",
                .list(.text(.targetPattern)),
                "HOST or HOST:PORT patterns of the targets whose tunnels are read and answered with certificates of the local authority; none by default."
            ),
            KeyDescriptor(
                "except",
                .list(.text(.targetPattern)),
                "Patterns of targets whose tunnels are left as they are, although 'hosts' has them."
            ),
            KeyDescriptor(
                "on_distrust",
                .choice(DistrustPolicy.allCases.map(\.rawValue)),
                default: "fail",
                "What becomes of a client that does not trust the local authority: fail goes on to read its tunnels, which it ends; tunnel leaves those to the same host as they are for an hour."
            ),
        ]
    )
}

/// `forward.intercept`: the tunnels that the daemon reads.
package struct InterceptionConfiguration: Sendable, Equatable {
    /// Patterns of the targets, in lower case: a host or `HOST:PORT`, as in `forward.allow`. Default: none.
    package var hosts: [String]
    /// Patterns of targets that are left alone all the same.
    package var except: [String]
    package var onDistrust: DistrustPolicy

    /// Whether any tunnel is read.
    package var isOn: Bool { !hosts.isEmpty }

    init(_ reader: SectionReader) {
        hosts = reader.texts("hosts")
        except = reader.texts("except")
        onDistrust = reader.choice(always: "on_distrust")
    }
}

extension Resolver {
    /// - Parameters:
    ///   - reader: the section `forward`.
    ///   - forward: what it says.
    mutating func check(interception reader: SectionReader, _ forward: ForwardConfiguration) {
        let section = reader.section("intercept")
        guard let position = reader.position("intercept"), !broken.contains(position) else { return }
        guard forward.interception.isOn else { return }
        for (host, item) in zip(forward.interception.hosts, section.items("hosts"))
        where !broken.contains(item.position) {
            let pattern = PatternParts(host)
            let byPort = forward.connectAllow.map(PatternParts.init).filter { $0.meets(pattern) }
            guard byPort.isEmpty else {
                let isAllowed =
                    byPort.contains { $0.host != "*" } || forward.allow.contains { PatternParts($0).meets(pattern) }
                if !isAllowed {
                    fail(
                        item.position,
                        "no client may reach '\(host)', so that none of its tunnels can be read; add '\(host)' to forward.allow"
                    )
                }
                continue
            }
            fail(
                item.position,
                "CONNECT may not reach '\(host)', so that none of its tunnels can be read; add '\(pattern.host):\(pattern.port ?? "443")' to forward.connect.allow"
            )
        }
    }
}

/// A pattern of targets, which was checked: a host, or all names below one, and a port, or all.
private struct PatternParts {
    let host: String
    /// Nil for every port.
    let port: String?

    init(_ text: String) {
        let colon = text.hasSuffix("]") ? text.endIndex : text.lastIndex(of: ":") ?? text.endIndex
        host = String(text[..<colon])
        let port = text[colon...].dropFirst()
        self.port = port.isEmpty || port == "*" ? nil : String(port)
    }

    /// Whether there is a target that both are for.
    func meets(_ other: PatternParts) -> Bool {
        guard port == nil || other.port == nil || port == other.port else { return false }
        return host == other.host || host == "*" || other.host == "*" || covers(other.host) || other.covers(host)
    }

    private func covers(_ name: String) -> Bool { host.hasPrefix("*.") && name.hasSuffix(host.dropFirst()) }
}
