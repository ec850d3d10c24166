// Groups of calls: endpoints become paths, and each value that a call uses has an earlier call that takes it.

import Matching
package import Policies

extension KeyTable {
    static let group = SectionDescriptor(
        name: "groups[]",
        keys: [
            KeyDescriptor("name", .text(.word), "The name for 'drydock run' and in 'drydock jobs'.", required: true),
            KeyDescriptor(
                "mode",
                .choice(GroupMode.allCases.map(\.rawValue)),
                default: "serial",
                "Whether the calls are made one after the other, or all at once."
            ),
            KeyDescriptor(
                "on_error",
                .choice(GroupFailurePolicy.allCases.map(\.rawValue)),
                default: "stop",
                "What happens to the other calls when a call fails."
            ),
            KeyDescriptor(
                "every",
                .duration,
                "The time from one run to the next; without it only 'drydock run' runs the group."
            ),
            KeyDescriptor(
                "at_start",
                .boolean,
                default: "false",
                "With 'every': whether the first run begins as soon as the configuration is in force."
            ),
            KeyDescriptor("calls", .sections(groupCall), "The calls; a group without calls is done at once."),
        ]
    )

    private static let groupCall = SectionDescriptor(
        name: "groups[].calls[]",
        keys: [
            KeyDescriptor("service", .text(.any), "The service that is called.", required: true),
            KeyDescriptor("endpoint", .text(.any), "The endpoint of the service, for its method and path."),
            KeyDescriptor("params", .map(.queryName, .text(.any)), "The parameters of the endpoint's path."),
            KeyDescriptor("path", .text(.requestPath), "In place of 'endpoint': the path below the service."),
            KeyDescriptor("method", .text(.token), "With 'path': the method; POST with a body, otherwise GET."),
            KeyDescriptor("query", .map(.queryName, .text(.any)), "Query items; they are percent-encoded."),
            KeyDescriptor("headers", .map(.fieldName, .text(.fieldValue)), "Fields of the request."),
            KeyDescriptor("body", .text(.any), "The body of the request."),
            KeyDescriptor(
                "take",
                .map(.valueName, .text(.takenPath)),
                "Values for later calls, which write $(NAME): body.KEY.KEY, header.NAME or status."
            ),
            KeyDescriptor("when", .section(groupCondition), "A condition; the call is skipped if it is not met."),
        ]
    )

    private static let groupCondition = SectionDescriptor(
        name: "groups[].calls[].when",
        keys: [
            KeyDescriptor("value", .text(.any), "The name of a value that an earlier call takes.", required: true),
            KeyDescriptor("is", .text(.any), "The text that the value must be."),
            KeyDescriptor("is_not", .text(.any), "In place of 'is': the text that the value must not be."),
        ]
    )
}

/// One call of a group; endpoints are resolved to their method and path.
package struct GroupCallConfiguration: Sendable, Equatable {
    /// The name of the service, which exists.
    package var service: String
    package var method: String
    /// The path below the service, with its slash.
    package var path: PlaceholderText
    package var query: [NamedText] = []
    package var headers: [NamedText] = []
    package var body: PlaceholderText?
    /// The values that later calls may use, by name.
    package var take: [String: TakenPath] = [:]
    package var condition: ValueCondition?

    /// A query item or a field.
    package struct NamedText: Sendable, Equatable {
        package var name: String
        package var value: PlaceholderText
    }
}

/// A group of calls that are made one after the other or all at once.
package struct GroupConfiguration: Sendable, Equatable {
    /// The name of the group, unique among the groups.
    package var name: String
    /// The order of the calls. Default: serial.
    package var mode: GroupMode
    /// The consequence of a failed call for the others. Default: stop.
    package var onError: GroupFailurePolicy
    /// The times of the runs; nil for a group that runs only if it is told to.
    package var schedule: ScheduleConfiguration?
    /// The calls in the order of the file; empty for a group that is done at once.
    package var calls: [GroupCallConfiguration] = []
}

extension Resolver {
    mutating func groups(_ root: SectionReader, services: [ServiceConfiguration]) -> [GroupConfiguration] {
        var names: Set<String> = []
        return root.items("groups").compactMap { value in
            guard case .section(let entries) = value.content, !broken.contains(value.position) else { return nil }
            let reader = SectionReader(entries: entries, section: KeyTable.group)
            guard let name = reader.text("name") else { return nil }
            if !names.insert(name).inserted {
                fail(position(reader, "name"), "'\(name)' is the name of an earlier group; choose another name")
            }
            var result = GroupConfiguration(name: name, reader)
            result.schedule = schedule(reader, "groups[]")
            var known: [String] = []
            for value in reader.items("calls") {
                guard let call = call(value, result.mode, services, known) else { continue }
                known += call.take.keys
                result.calls.append(call)
            }
            return result
        }
    }

    private mutating func call(
        _ value: Value,
        _ mode: GroupMode,
        _ services: [ServiceConfiguration],
        _ known: [String]
    ) -> GroupCallConfiguration? {
        let section = KeyTable.group.key("calls")?.kind.section
        guard case .section(let entries) = value.content, let section, !broken.contains(value.position) else {
            return nil
        }
        let reader = SectionReader(entries: entries, section: section)
        guard let name = reader.text("service") else { return nil }
        guard let service = services.first(where: { $0.name == name }) else {
            let nearest = Suggestions.nearest(to: name, among: services.map(\.name))
            fail(
                position(reader, "service"),
                "'groups[].calls[].service' names a service that does not exist: '\(name)'\(Self.hint(nearest))"
            )
            return nil
        }
        guard let (method, path) = target(value.position, reader, service) else { return nil }
        var call = GroupCallConfiguration(service: name, method: method, path: path)
        call.query = named(reader, "query")
        call.headers = named(reader, "headers")
        call.body = reader.text("body").map { PlaceholderText($0) }
        for entry in reader.map("take") {
            if case .leaf(let leaf) = entry.value.content { call.take[entry.key] = TakenPath(words: leaf.text) }
        }
        call.condition = condition(reader)
        check(values: call, mode, known, value.position)
        return call
    }

    /// Resolves the method and the path of a call.
    private mutating func target(
        _ position: SourcePosition,
        _ reader: SectionReader,
        _ service: ServiceConfiguration
    ) -> (method: String, path: PlaceholderText)? {
        let (path, name) = (reader.text("path"), reader.text("endpoint"))
        guard (path == nil) != (name == nil) else {
            fail(position, "a call has either 'endpoint' or 'path'; give one of them")
            return nil
        }
        if let path {
            if let position = reader.position("params") {
                fail(position, "'groups[].calls[].params' is for 'endpoint'; write the values into 'path'")
            }
            return (reader.text("method") ?? (reader.entry("body") == nil ? "GET" : "POST"), PlaceholderText(path))
        }
        guard let name, let endpoint = service.endpoints.first(where: { $0.name == name }) else {
            let nearest = Suggestions.nearest(to: name ?? "", among: service.endpoints.map(\.name))
            fail(
                self.position(reader, "endpoint"),
                "service '\(service.name)' has no endpoint '\(name ?? "")'\(Self.hint(nearest))"
            )
            return nil
        }
        if let position = reader.position("method") {
            fail(position, "endpoint '\(name)' has a method of its own, \(endpoint.method); remove 'method'")
        }
        var params = Dictionary(named(reader, "params").map { ($0.name, $0.value) }) { first, _ in first }
        var pieces: [PlaceholderText.Piece] = []
        for segment in endpoint.path.segments {
            pieces.append(.text("/"))
            switch segment {
            case .literal(let text): pieces.append(.text(text))
            case .parameter(let parameter):
                guard let value = params.removeValue(forKey: parameter), !value.pieces.isEmpty else {
                    fail(
                        self.position(reader, "endpoint"),
                        "the path of endpoint '\(name)' has the parameter '\(parameter)'; give it under 'params'"
                    )
                    return nil
                }
                pieces += value.pieces.map { piece in
                    guard case .text(let text) = piece else { return piece }
                    return .text(PlaceholderText.percentEncoded(text))
                }
            case .rest:
                fail(
                    self.position(reader, "endpoint"),
                    "the path of endpoint '\(name)' ends with '*'; give 'path' in place of 'endpoint'"
                )
                return nil
            }
        }
        if let other = params.keys.min(), let position = reader.position("params") {
            fail(position, "the path of endpoint '\(name)' has no parameter '\(other)'; remove it")
        }
        return (endpoint.method, PlaceholderText(pieces.isEmpty ? [.text("/")] : pieces))
    }

    private mutating func condition(_ reader: SectionReader) -> ValueCondition? {
        guard reader.entry("when") != nil else { return nil }
        let when = reader.section("when")
        guard let name = when.text("value") else { return nil }
        let (same, other) = (when.text("is"), when.text("is_not"))
        guard let text = same ?? other, same == nil || other == nil else {
            fail(position(reader, "when"), "'groups[].calls[].when' has either 'is' or 'is_not'; give one of them")
            return nil
        }
        return ValueCondition(name: name, text: text, wantsEqual: same != nil)
    }

    /// Checks that every value that a call uses is taken by an earlier call.
    private mutating func check(
        values call: GroupCallConfiguration,
        _ mode: GroupMode,
        _ known: [String],
        _ position: SourcePosition
    ) {
        let texts = [call.path] + (call.query + call.headers).map(\.value) + [call.body].compactMap { $0 }
        let used = texts.flatMap(\.names) + [call.condition?.name].compactMap { $0 }
        if mode == .concurrent, !used.isEmpty || !call.take.isEmpty {
            fail(
                position,
                "the calls of a concurrent group begin together, so none can use a value of another; write mode: serial"
            )
        } else if let missing = used.first(where: { !known.contains($0) }) {
            let nearest = Suggestions.nearest(to: missing, among: known)
            fail(
                position,
                "no earlier call takes a value '\(missing)'\(Self.hint(nearest)); add it to a 'take', or write $$( for a literal '$('"
            )
        }
    }

    private func named(_ reader: SectionReader, _ key: String) -> [GroupCallConfiguration.NamedText] {
        reader.headerValues(key).map { .init(name: $0.name, value: PlaceholderText($0.value)) }
    }

    private static func hint(_ nearest: String?) -> String { nearest.map { "; did you mean '\($0)'?" } ?? "" }
}

extension GroupConfiguration {
    init(name: String, _ reader: SectionReader) {
        self.name = name
        mode = reader.choice(always: "mode")
        onError = reader.choice(always: "on_error")
    }
}
