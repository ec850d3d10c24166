// Reading a configuration: the file, the files it includes, decoding and resolving.

package import EventLoop
import Files
import FoundationEssentials
import Glibc

extension Configuration {
    /// The path that stands for standard input, which can be read only once.
    package static let standardInput = "-"
    /// The name of standard input in errors.
    package static let standardInputName = "<standard input>"

    /// Reads a configuration file and everything that it includes.
    ///
    /// - Parameters:
    ///   - path: the path of the file. ``standardInput`` reads standard input to its end; relative paths in it are
    ///     relative to the working folder.
    ///   - environment: the variables for `${NAME}`.
    /// - Throws: every error of every file.
    package static func load(
        path: String,
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws(ConfigurationErrors) -> Configuration {
        var (loader, text, file) = try Loader.open(path, environment)
        return try loader.load(text, file: file)
    }

    /// The admin address of the daemon with a configuration file; nil if the file leaves it to the default.
    ///
    /// Commands may run as another user than the daemon: a variable that is not set here, or a file that is not
    /// readable here, is an error only if the address itself depends on it.
    /// - Throws: every other error of every file, or that the file says `admin: none`.
    package static func adminAddress(
        path: String,
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws(ConfigurationErrors) -> ListenAddress? {
        var (loader, text, file) = try Loader.open(path, environment)
        return try loader.adminAddress(text, file: file)
    }

    /// Reads a configuration from a text; relative paths are relative to the folder of `file`, which need not exist.
    package static func load(
        text: String,
        file: String,
        environment: [String: String]
    ) throws(ConfigurationErrors) -> Configuration {
        var loader = Loader(environment: environment)
        return try loader.load(text, file: file)
    }
}

/// Collects the errors of reading one configuration.
private struct Loader {
    let environment: [String: String]
    var errors: [ConfigurationError] = []
    private var warnings: [ConfigurationError] = []
    private var files: [String] = []
    /// Whether the main file has the key `admin`.
    private var namesAdmin = false

    init(environment: [String: String]) { self.environment = environment }

    /// Opens the main file.
    /// - Returns: a loader, the text of the file, and the name of the file in errors.
    static func open(
        _ path: String,
        _ environment: [String: String]
    ) throws(ConfigurationErrors) -> (loader: Loader, text: String, file: String) {
        var loader = Loader(environment: environment)
        let isInput = path == Configuration.standardInput
        let file = isInput ? Configuration.standardInputName : path
        let position = SourcePosition(file: file, line: 1, column: 1)
        guard let text = isInput ? loader.readInput(position) : loader.read(path, namedAt: position) else {
            throw ConfigurationErrors(errors: loader.errors)
        }
        return (loader, text, file)
    }

    private mutating func readInput(_ position: SourcePosition) -> String? {
        var data = Data()
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = Glibc.read(STDIN_FILENO, &buffer, buffer.count)
            if count == 0 { return text(data, file: position.file) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                let message = "standard input cannot be read: \(String(cString: strerror(errno)))"
                errors.append(ConfigurationError(position: position, message: message))
                return nil
            }
            data.append(contentsOf: buffer[..<count])
        }
    }

    /// Reads a file; an error has the position that names the file.
    mutating func read(_ path: String, namedAt position: SourcePosition) -> String? {
        if let problem = FileChecks.readable(path) {
            errors.append(ConfigurationError(position: position, message: "the file \(problem)", isOfProcess: true))
            return nil
        }
        let bytes: [UInt8]
        do throws(SystemError) { bytes = try WholeFile.read(path) } catch {
            let message = "the file \(path) cannot be read (\(error.reason)); change its permissions"
            errors.append(ConfigurationError(position: position, message: message, isOfProcess: true))
            return nil
        }
        return text(Data(bytes), file: path)
    }

    private mutating func text(_ data: Data, file: String) -> String? {
        if let text = String(validating: data, as: UTF8.self) { return text }
        let (line, column) = Self.firstInvalid(data)
        errors.append(
            ConfigurationError(
                position: SourcePosition(file: file, line: line, column: column),
                message: "the file is not UTF-8 here; save it as UTF-8"
            )
        )
        return nil
    }

    mutating func load(_ text: String, file: String) throws(ConfigurationErrors) -> Configuration {
        let result = resolve(text, file: file)
        if !errors.isEmpty { throw ConfigurationErrors(errors: Self.sorted(errors, files)) }
        return result
    }

    mutating func adminAddress(_ text: String, file: String) throws(ConfigurationErrors) -> ListenAddress? {
        let result = resolve(text, file: file)
        var certain = errors.filter { !$0.isOfProcess }
        if certain.isEmpty {
            if let address = result.admin?.listen.first { return address }
            if !namesAdmin { return nil }
            if result.admin != nil {
                let message = "'admin' is none, so that the daemon of this file takes no commands; name an address"
                certain.append(ConfigurationError(position: result.origin.position(of: "admin"), message: message))
            }
        }
        throw ConfigurationErrors(errors: Self.sorted(certain.isEmpty ? errors : certain, files))
    }

    /// Resolves a configuration; the result is valid only if there are no errors.
    private mutating func resolve(_ text: String, file: String) -> Configuration {
        if file != Configuration.standardInputName { files.append(Paths.absolute(file, besideFile: "")) }
        var source = SourceReader(file: file)
        var decoder = Decoder(environment: environment)
        let node = source.read(text)
        namesAdmin = node?.has(key: "admin") == true
        let unreadable = !source.errors.isEmpty
        errors += source.errors
        let root = node.map { decoder.section($0, KeyTable.root, label: "") } ?? []
        let reader = SectionReader(entries: root, section: KeyTable.root)
        let services = reader.items("services") + included(reader.items("include"), &decoder)
        errors += decoder.errors
        var resolver = Resolver(root: root, services: services, broken: decoder.broken, file: file)
        var result = resolver.configuration()
        // A file that is not YAML has no keys, so errors about missing keys are left out.
        if !unreadable { errors += resolver.errors }
        result.warnings = Self.sorted(warnings + result.warnings, files)
        var seen: Set<String> = []
        result.files = (files + resolver.demoFiles).filter { seen.insert($0).inserted }
        let own = Set(files)
        result.answerFiles = result.files.filter { !own.contains($0) }
        return result
    }

    /// The services of the included files, in the order of the patterns, then of the names.
    private mutating func included(_ patterns: [Value], _ decoder: inout Decoder) -> [Value] {
        var services: [Value] = []
        for pattern in patterns {
            guard case .leaf(let leaf) = pattern.content else { continue }
            let path = leaf.text
            let isPattern = path.contains { "*?[".contains($0) }
            let found = isPattern ? Self.matches(path) : [path]
            if found.isEmpty {
                warnings.append(
                    ConfigurationError(
                        position: pattern.position,
                        message: "'include' finds no file: nothing matches \(path); add one, or remove the pattern"
                    )
                )
            }
            for file in found where !files.contains(file) {
                files.append(file)
                guard let text = read(file, namedAt: pattern.position) else { continue }
                var source = SourceReader(file: file)
                let node = source.read(text)
                errors += source.errors
                guard let node else { continue }
                let entries = decoder.section(node, KeyTable.included, label: "")
                services += SectionReader(entries: entries, section: KeyTable.included).items("services")
            }
        }
        return services
    }

    private static func matches(_ pattern: String) -> [String] {
        var found = glob_t()
        defer { globfree(&found) }
        guard glob(pattern, 0, nil, &found) == 0 else { return [] }
        // glob(3) filled gl_pathv with gl_pathc strings, which live until globfree.
        return (0..<Int(found.gl_pathc)).compactMap { found.gl_pathv[$0].map { String(cString: $0) } }
    }

    /// The errors by file in the order of reading, then by line and column, each error once.
    private static func sorted(_ errors: [ConfigurationError], _ files: [String]) -> [ConfigurationError] {
        var seen: Set<ConfigurationError> = []
        let order = Dictionary(files.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
        return errors.filter { seen.insert($0).inserted }.sorted { a, b in
            let first = order[a.position.file] ?? -1
            let second = order[b.position.file] ?? -1
            return (first, a.position.line, a.position.column) < (second, b.position.line, b.position.column)
        }
    }

    /// The line and column of the first byte that is not UTF-8.
    private static func firstInvalid(_ data: Data) -> (line: Int, column: Int) {
        var parser = Unicode.UTF8.ForwardParser()
        var bytes = data.makeIterator()
        var (line, column) = (1, 1)
        while case .valid(let encoded) = parser.parseScalar(from: &bytes) {
            column += 1
            if encoded.first == 10 { (line, column) = (line + 1, 1) }
        }
        return (line, column)
    }
}
