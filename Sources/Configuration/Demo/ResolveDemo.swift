// Checks demo answers: the files of their content, and whether demo mode is on.

/// The owner of a demo section.
enum DemoOwner {
    /// A service, whose demo answer is for the paths that no endpoint has.
    case service
    /// An endpoint: its name, the position of the name, and the parameters of its path.
    case endpoint(String, SourcePosition, parameters: [String])
}

/// The folder of the answer files of a demo section.
struct DemoFolder {
    /// The absolute path of the folder; nil for the folder of the configuration file.
    var path: String?
    /// Whether the folder exists. The files of a missing folder are not checked, so that one mistake is one error.
    var isThere = true
}

extension Resolver {
    /// Reads and checks a demo section.
    /// - Parameters:
    ///   - own: the section without inherited keys.
    ///   - isSource: whether `source: demo` switches the answers on.
    mutating func demo(
        _ reader: SectionReader,
        own: SectionReader,
        answerOf owner: DemoOwner,
        isSource: Bool,
        daemonDemo: Bool
    ) -> DemoConfiguration {
        var result = DemoConfiguration(reader)
        // The latency is read once more for its errors, because the initializer has no way to report them.
        _ = latency(reader, label: "demo.latency")
        checkFields(reader, of: "demo")
        let folder = folder(reader) ?? DemoFolder()
        result.answer.failure = failure(reader, folder)
        result.answer.choice = choice(reader, folder, result.answer.answer)
        result.answer.misbehaviours = misbehaviours(reader) ?? []
        var parameters: [String] = []
        if case .endpoint(_, _, let known) = owner { parameters = known }
        result.rules = rules(reader, parameters: parameters, folder: folder, in: result.answer)
        // A status beside rules is the answer to requests without a rule, and needs no content.
        if own.entry("status") != nil, !own.items("rules").isEmpty { result.hasOwnAnswer = true }
        let said = reader.entry("enabled").map { _ in reader.bool("enabled") }
        if isSource, said == false, let position = own.position("enabled") {
            fail(position, "'source: demo' and 'demo.enabled: false' contradict each other; remove one")
        }
        let enabled = isSource ? true : said
        answer(reader, owner, folder, wanted: enabled == true && reader.items("rules").isEmpty, &result)
        result.enabled = result.hasAnswer && (enabled ?? daemonDemo)
        return result
    }

    /// Reads the folder of the answer files; nil if the section names none.
    mutating func folder(_ reader: SectionReader) -> DemoFolder? {
        guard let path = reader.text("files") else { return nil }
        guard let problem = FileChecks.isFolder(path) else { return DemoFolder(path: path) }
        fail(position(reader, "files"), file: "'demo.files' \(problem)")
        return DemoFolder(path: path, isThere: false)
    }

    /// Finds the body of the own answer, and reports a file that is required and missing.
    private mutating func answer(
        _ reader: SectionReader,
        _ owner: DemoOwner,
        _ folder: DemoFolder,
        wanted: Bool,
        _ result: inout DemoConfiguration
    ) {
        let status = result.answer.answer.status
        // Several answers need no content here, and wrong ones are reported already.
        let isOne =
            ["sequence", "answers"].allSatisfy { reader.entry($0) == nil } && reader.map("status").isEmpty
        if !isOne { result.hasOwnAnswer = true }
        if content(reader, folder, of: "demo", into: &result.answer.answer) {
            result.answer.choice = result.answer.choice.with(contentOf: result.answer.answer)
            result.hasOwnAnswer = true
            return
        }
        if Self.bodilessStatuses.contains(status), reader.entry("status") != nil {
            result.hasOwnAnswer = true
            return
        }
        guard case .endpoint(let name, let namePosition, _) = owner else { return }
        guard let path = folder.path.map({ "\($0)/\(name).json" }) else {
            if wanted, isOne {
                fail(
                    position(reader, "enabled"),
                    "the endpoint '\(name)' is in demo mode, but has no file; set 'demo.files' (its file is then \(name).json) or 'demo.file'"
                )
            }
            return
        }
        guard folder.isThere, wanted && isOne || FileChecks.exists(path) else { return }
        if let problem = FileChecks.readable(path, atMost: FileChecks.largestDemoFile) {
            fail(namePosition, file: "the demo file of the endpoint '\(name)': \(problem); or set 'demo.file'")
            return
        }
        demoFiles.append(path)
        result.answer.answer.file = path
        checkTemplate(reader, result.answer.answer, of: "demo")
        result.answer.choice = result.answer.choice.with(contentOf: result.answer.answer)
        result.hasOwnAnswer = true
    }

    mutating func failure(_ owner: SectionReader, _ folder: DemoFolder) -> FailureConfiguration? {
        guard owner.entry("failure") != nil else { return nil }
        let reader = owner.section("failure")
        var result = FailureConfiguration(reader)
        _ = content(reader, folder, of: "demo.failure", into: &result.answer)
        return result
    }

    /// The absolute path of a file that is named relative to `demo.files`, or else to the configuration file.
    mutating func demoFile(_ reader: SectionReader, _ key: String, _ folder: DemoFolder) -> String? {
        guard let name = reader.text(key), let position = reader.position(key) else { return nil }
        let path: String
        if name.hasPrefix("/") {
            path = Paths.normal(name)
        } else if let folder = folder.path {
            path = Paths.normal(folder + "/" + name)
        } else {
            path = Paths.absolute(name, besideFile: position.file)
        }
        if folder.isThere || name.hasPrefix("/"),
            let problem = FileChecks.readable(path, atMost: FileChecks.largestDemoFile)
        {
            fail(position, file: "the demo file \(problem)")
        }
        demoFiles.append(path)
        return path
    }
}
