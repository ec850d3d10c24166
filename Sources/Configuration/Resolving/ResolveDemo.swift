// Demo answers: which file, whether it is there, and whether the answer is on.

/// The owner of a demo section.
enum DemoOwner {
    /// The answer for the paths that no endpoint names.
    case service
    /// Name, and the place of the name.
    case endpoint(String, SourcePosition)
}

extension Resolver {
    mutating func demo(_ reader: SectionReader, answerOf owner: DemoOwner, daemonDemo: Bool) -> DemoConfiguration {
        var result = DemoConfiguration(reader)
        var folder = reader.text("files")
        var folderIsThere = true
        if let path = folder, let problem = FileChecks.isFolder(path) {
            fail(place(reader, "files"), file: "'demo.files' \(problem)")
            folderIsThere = false
            folder = path
        }
        result.failure = failure(reader, folder: folder, check: folderIsThere)
        let enabled = reader.entry("enabled").map { _ in reader.bool("enabled") }
        answer(reader, owner, folder: folder, check: folderIsThere, wanted: enabled == true, &result)
        result.enabled = result.hasAnswer && (enabled ?? daemonDemo)
        return result
    }

    /// Finds the body of the answer; reports a file that was asked for and is not there.
    private mutating func answer(
        _ reader: SectionReader,
        _ owner: DemoOwner,
        folder: String?,
        check: Bool,
        wanted: Bool,
        _ result: inout DemoConfiguration
    ) {
        let bodiless = [204, 205, 304].contains(result.status)
        if let named = demoFile(reader, "file", folder: folder, check: check) {
            if bodiless {
                fail(
                    place(reader, "file"),
                    "an answer with status \(result.status) has no body (RFC 9110); remove 'demo.file', or change the status"
                )
            }
            result.file = named
            result.hasAnswer = true
            return
        }
        if bodiless, reader.entry("status") != nil {
            result.hasAnswer = true
            return
        }
        guard case .endpoint(let name, let namePlace) = owner else { return }
        guard let folder else {
            if wanted {
                fail(
                    place(reader, "enabled"),
                    "the endpoint '\(name)' is in demo mode, but has no file; set 'demo.files' (its file is then \(name).json) or 'demo.file'"
                )
            }
            return
        }
        let path = folder + "/" + name + ".json"
        guard check, wanted || FileChecks.exists(path) else { return }
        if let problem = FileChecks.readable(path, atMost: FileChecks.largestDemoFile) {
            fail(namePlace, file: "the demo file of the endpoint '\(name)': \(problem); or set 'demo.file'")
            return
        }
        demoFiles.append(path)
        result.file = path
        result.hasAnswer = true
    }

    private mutating func failure(_ demo: SectionReader, folder: String?, check: Bool) -> FailureConfiguration? {
        guard demo.entry("failure") != nil else { return nil }
        let reader = demo.section("failure")
        var result = FailureConfiguration(reader)
        result.file = demoFile(reader, "file", folder: folder, check: check)
        return result
    }

    /// The absolute path of a file that is named relative to `demo.files`, or else to the configuration file.
    private mutating func demoFile(_ reader: SectionReader, _ key: String, folder: String?, check: Bool) -> String? {
        guard let name = reader.text(key), let place = reader.place(key) else { return nil }
        let path: String
        if name.hasPrefix("/") {
            path = Paths.normal(name)
        } else if let folder {
            path = Paths.normal(folder + "/" + name)
        } else {
            path = Paths.absolute(name, besideFile: place.file)
        }
        if check || name.hasPrefix("/"), let problem = FileChecks.readable(path, atMost: FileChecks.largestDemoFile) {
            fail(place, file: "the demo file \(problem)")
        }
        demoFiles.append(path)
        return path
    }
}
