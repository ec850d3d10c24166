// From decoded entries to the model: inheritance, defaults, and what only shows when keys are seen together.

import Policies

/// Resolves one configuration; collects every error that is left after decoding.
struct Resolver {
    let root: [Entry]
    /// Of the main file and the included ones, in order.
    let services: [Value]
    /// The sections and lists that did not decode: what they lack causes no further errors.
    let broken: Set<SourcePosition>
    let file: String
    var errors: [ConfigurationError] = []
    var warnings: [ConfigurationError] = []
    /// Demo files, for `--watch`.
    var demoFiles: [String] = []
    /// The rules of each profile, by its name.
    var faultProfiles: [String: [FaultPolicy]] = [:]
    /// The services' merged trees.
    var trees: [[Entry]] = []
    /// The endpoints by what they are stored as.
    var storedFiles: [String: String] = [:]
    /// Defaults that follow another key, by dotted key.
    var followed: [(key: String, leaf: Leaf)] = []

    init(root: [Entry], services: [Value], broken: Set<SourcePosition>, file: String) {
        self.root = root
        self.services = services
        self.broken = broken
        self.file = file
    }

    mutating func fail(_ place: SourcePosition, _ message: String) {
        errors.append(ConfigurationError(place: place, message: message))
    }

    /// Reports an error of a file or folder that the configuration names.
    mutating func fail(_ place: SourcePosition, file message: String) {
        errors.append(ConfigurationError(place: place, message: message, isOfProcess: true))
    }

    /// The place of a key's value, or the file's beginning where the key is not given.
    func place(_ reader: SectionReader, _ key: String) -> SourcePosition {
        reader.place(key) ?? SourcePosition(file: file, line: 1, column: 1)
    }

    mutating func configuration() -> Configuration {
        let reader = SectionReader(entries: root, section: KeyTable.root)
        var result = Configuration(reader)
        faultProfiles = profiles(reader)
        result.faultProfiles = faultProfiles
        result.admin = admin(reader, listen: result.listen)
        result.cache = tiers(reader.section("cache"))
        result.forward = forward(reader.section("forward"))
        if let place = reader.place("forward"), !broken.contains(place) {
            check(resilience: reader.section("forward"), result.forward)
        }
        result.limits = limits(reader.section("limits"))
        result.log = log(reader.section("log"))
        result.journal = journal(reader.section("journal"))
        result.learnedLatencies = learnedLatencies(reader)
        result.prefetch = prefetches(reader)
        checkListeners(reader, result)
        result.services = resolveServices(reader)
        result.purge = purges(reader, services: result.services.map(\.name))
        result.groups = groups(reader, services: result.services)
        if result.givenName == nil {
            followed.append(("name", Leaf(text: result.name, scalar: .text(result.name))))
        }
        result.warnings = warnings
        result.origin = ConfigurationOrigin(file: file, root: root, services: trees, followed: followed)
        return result
    }

    private func addresses(_ scalars: [Scalar]) -> [ListenAddress] {
        scalars.compactMap { scalar in
            guard case .address(let address) = scalar else { return nil }
            return address
        }
    }

    private mutating func admin(_ root: SectionReader, listen: [ListenAddress]) -> AdminConfiguration? {
        guard let place = root.place("admin"), !broken.contains(place) else { return nil }
        let reader = root.section("admin")
        let isNone = reader.leaf("listen")?.scalar == Scalar.none
        let result = AdminConfiguration(listen: addresses(reader.scalars("listen")), reader)
        for (item, address) in zip(reader.items("listen"), result.listen) {
            if !address.isLoopback {
                fail(
                    item.place,
                    "the admin API has no password, so it listens on a unix socket or on loopback only; write unix:/run/drydock/admin.sock"
                )
            }
            if listen.contains(where: { $0.meets(address) }) {
                fail(item.place, "\(address) is also in 'listen'; the admin API needs its own address")
            }
        }
        if result.listen.isEmpty, !isNone {
            fail(place, "'admin.listen' is an empty list; name an address, or write admin: none")
        }
        for key in ["mode", "group"] where !result.listen.contains(where: \.isUnix) {
            if let place = reader.place(key) {
                fail(place, "'admin.\(key)' is for unix sockets, and there is none under 'admin.listen'; remove it")
            }
        }
        return result
    }

    private mutating func checkListeners(_ reader: SectionReader, _ result: Configuration) {
        let items = reader.items("listen")
        if let place = reader.place("listen"), items.isEmpty, !broken.contains(place) {
            fail(place, "'listen' is an empty list; name an address such as localhost:8080")
        }
        if let place = reader.place("clients"), result.clients.isEmpty, !broken.contains(place) {
            fail(place, "'clients' is an empty list, so no client could connect; write [loopback]")
        }
        for (index, item) in zip(result.listen.indices, items) {
            let address = result.listen[index]
            guard let earlier = result.listen[..<index].first(where: { $0.meets(address) }) else { continue }
            let also = earlier == address ? "" : ", by \(earlier) too"
            fail(item.place, "\(address) is listed twice\(also); remove one")
        }
        guard reader.entry("clients") == nil, let index = result.listen.firstIndex(where: { !$0.isLoopback }) else {
            return
        }
        guard result.forward.enabled else {
            warnings.append(
                ConfigurationError(
                    place: items[index].place,
                    message: Self.onlyThisMachine(result.listen[index])
                )
            )
            return
        }
        let place = reader.section("forward").place("enabled") ?? items[index].place
        fail(
            place,
            "forward mode on \(result.listen[index]) would be open to the whole network; say who may connect (clients: [192.168.0.0/16]), or write forward: { enabled: false }"
        )
    }

    private mutating func tiers(_ reader: SectionReader) -> TierConfiguration {
        var result = TierConfiguration()
        let memory = reader.section("memory")
        result.memory = MemoryTierConfiguration(memory)
        result.memory.maxObject = bounded(memory, "max_object", by: result.memory.size, "size", of: "cache.memory")
        guard reader.entry("disk") != nil else { return result }
        let disk = reader.section("disk")
        guard let path = disk.text("path") else { return result }
        var tier = DiskTierConfiguration(path: path, disk)
        tier.maxObject = bounded(disk, "max_object", by: tier.size, "size", of: "cache.disk")
        if let problem = FileChecks.canHoldStore(path) {
            fail(disk.place("path") ?? place(reader, "disk"), file: "'cache.disk.path' \(problem)")
        }
        result.disk = tier
        return result
    }

    /// A part that cannot be larger than its whole: the default follows the whole, a given value
    /// that is larger is an error.
    private mutating func bounded(
        _ reader: SectionReader,
        _ key: String,
        by bound: Int,
        _ other: String,
        of label: String
    ) -> Int {
        let value = reader.always { $0.bytes(key) ?? $0.int(key) }
        if value > bound, let place = reader.place(key) {
            fail(place, "'\(label).\(key)' is larger than '\(label).\(other)'; lower it, or raise '\(other)'")
        } else if value > bound {
            let isSize = reader.bytes(key) != nil
            let leaf = Leaf(
                text: isSize ? Units.sizeText(bound) : String(bound),
                scalar: isSize ? .bytes(bound) : .int(bound)
            )
            followed.append(("\(label).\(key)", leaf))
        }
        return min(value, bound)
    }

    private mutating func forward(_ reader: SectionReader) -> ForwardConfiguration {
        var result = ForwardConfiguration(reader)
        let tls = reader.section("tls")
        if let ca = result.ca, let problem = FileChecks.readable(ca) {
            fail(place(tls, "ca"), file: "'forward.tls.ca' \(problem)")
        }
        let timeout = reader.section("timeout")
        if let place = timeout.place("tunnel"), timeout.nanoseconds("tunnel") == 0 {
            fail(place, "'forward.timeout.tunnel' is zero; write none for no timeout")
        }
        let cacheReader = reader.section("cache")
        result.cache = cache(cacheReader, own: cacheReader)
        result.faults = faults(reader)
        followed += Self.followed(result.cache).map { ("forward.cache.\($0.key)", $0.leaf) }
        return result
    }

    /// - Parameter reader: of the section `forward`.
    private mutating func check(resilience reader: SectionReader, _ forward: ForwardConfiguration) {
        if forward.maxConcurrent == nil, let place = reader.place("max_queue") {
            fail(
                place,
                "'forward.max_queue' needs 'forward.max_concurrent', which is not set; set it, or remove 'max_queue'"
            )
        }
        if forward.breaker == nil, let place = reader.place("breaker"),
            reader.section("breaker").entry("failures") == nil
        {
            fail(
                place,
                "'forward.breaker' needs 'forward.breaker.failures', which is not set; set it, or remove 'breaker'"
            )
        }
        if reader.section("retry").texts("when").contains("content") {
            fail(
                place(reader.section("retry"), "when"),
                "'forward.retry.when' has content, but forward mode takes every body; remove content"
            )
        }
    }

    private mutating func limits(_ reader: SectionReader) -> LimitsConfiguration {
        var result = LimitsConfiguration(reader)
        result.field = bounded(reader, "field", by: result.head, "head", of: "limits")
        result.target = bounded(reader, "target", by: result.head, "head", of: "limits")
        result.responseLine = bounded(reader, "response_line", by: result.responseHead, "response_head", of: "limits")
        for key in ["head", "field", "target", "response_head", "response_line"] {
            if let place = reader.place(key), let size = reader.bytes(key), size < 256 {
                let what = key.hasPrefix("response") ? "response" : "request"
                fail(place, "'limits.\(key)' is too small for any \(what); write 1KiB or more")
            }
        }
        for key in ["head_timeout", "idle"] {
            if let place = reader.place(key), reader.nanoseconds(key) == 0 {
                fail(place, "'limits.\(key)' is too short; write 1s or more")
            }
        }
        result.perClient = bounded(reader, "per_client", by: result.connections, "connections", of: "limits")
        return result
    }

    private mutating func journal(_ reader: SectionReader) -> JournalConfiguration {
        let result = JournalConfiguration(reader)
        if let bodies = result.bodies, bodies > JournalConfiguration.longestBody, let place = reader.place("bodies") {
            fail(place, "'journal.bodies' is more than the journal takes of one body; write 64KiB or less, or off")
        }
        return result
    }

    private mutating func learnedLatencies(_ reader: SectionReader) -> String? {
        guard let path = reader.text("learned_latencies") else { return nil }
        if let problem = FileChecks.canBeFile(path) {
            fail(place(reader, "learned_latencies"), file: "'learned_latencies' \(problem)")
        }
        return path
    }

    private mutating func log(_ reader: SectionReader) -> LogConfiguration {
        let result = LogConfiguration(reader)
        if case .file(let path) = result.access, let problem = FileChecks.canBeFile(path) {
            fail(place(reader, "access"), file: "'log.access' \(problem)")
        }
        return result
    }
}

extension ListenAddress {
    var isUnix: Bool {
        if case .unix = self { true } else { false }
    }

    /// Whether the two cannot be bound side by side: one takes a port of an address that the other takes, too.
    func meets(_ other: ListenAddress) -> Bool {
        if case .unix(let path) = self, case .unix(let path2) = other { return path == path2 }
        return bound.contains { mine in
            other.bound.contains { its in
                let isOneFamily = mine.address.count == its.address.count
                let isAll = [mine, its].contains { $0.address.allSatisfy { $0 == 0 } }
                return mine.port == its.port && isOneFamily && (isAll || mine.address == its.address)
            }
        }
    }

    /// The IP addresses that are bound, in network order: `localhost` and `*` are two each. Port 0 is another port each
    /// time, so that it never meets another address.
    private var bound: [(address: [UInt8], port: UInt16)] {
        switch self {
        case .tcp(_, port: 0), .unix: []
        case .tcp("localhost", let port): [([127, 0, 0, 1], port), (AddressBytes.loopback6, port)]
        case .tcp("*", let port): [([0, 0, 0, 0], port), ([UInt8](repeating: 0, count: 16), port)]
        case .tcp(let host, let port): AddressBytes.parse(host).map { [($0, port)] } ?? []
        }
    }
}

extension Resolver {
    /// The warning for an address that other machines can reach while `clients` admits none of them.
    static func onlyThisMachine(_ address: ListenAddress) -> String {
        "other machines can connect to \(address), and each gets a 403, since 'clients' is [loopback] by default; "
            + "name who may connect, such as clients: [192.168.0.0/16], or listen on localhost"
    }
}
