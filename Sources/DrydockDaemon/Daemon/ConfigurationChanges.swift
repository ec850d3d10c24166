// What a reload changes, in the words of the file.

import Configuration

extension Configuration {
    /// The most lines of ``changes(since:)``; one more says how many were left out.
    static let mostChanges = 20

    /// What differs from an older configuration, a line each: services that are new, gone or changed, and whether keys
    /// of the daemon itself differ. Empty if nothing does.
    func changes(since old: Configuration) -> [String] {
        let before = Dictionary(old.services.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        let names = Set(services.map(\.name))
        var lines: [String] = []
        for service in services {
            guard let earlier = before[service.name] else {
                lines.append("service \(service.name) is new")
                continue
            }
            if earlier != service { lines.append("service \(service.name) has changed") }
        }
        for service in old.services where !names.contains(service.name) {
            lines.append("service \(service.name) is gone")
        }
        var rest = self
        rest.services = old.services
        if rest != old { lines.append("keys of the daemon itself have changed") }
        let leftOut = lines.count - Self.mostChanges
        return leftOut > 0 ? lines.prefix(Self.mostChanges) + ["and \(leftOut) more"] : lines
    }
}
