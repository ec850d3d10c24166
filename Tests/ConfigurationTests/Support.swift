// What the tests of this module share: loading texts, collecting errors, a folder with files.

import Foundation
import KeySupport
import Testing

@testable import Configuration

/// Loads a text as `test.yaml`, a file that need not exist.
func load(_ text: String, environment: [String: String] = [:]) throws -> Configuration {
    try Configuration.load(text: text, file: "test.yaml", environment: environment)
}

/// The errors of a text as `LINE:COL: message`; empty where it loads.
func errors(_ text: String, environment: [String: String] = [:]) -> [String] {
    do {
        _ = try load(text, environment: environment)
        return []
    } catch let failure as ConfigurationErrors {
        return failure.errors.map { $0.description.replacing("test.yaml:", with: "") }
    } catch {
        return ["unexpected: \(error)"]
    }
}

/// Expects exactly one error, at a position, whose message contains every given text.
func expectError(
    _ text: String,
    _ position: String,
    _ parts: [String],
    environment: [String: String] = [:],
    location: SourceLocation = #_sourceLocation
) {
    let found = errors(text, environment: environment)
    #expect(found.count == 1, "\(found) in\n\(text)", sourceLocation: location)
    guard let first = found.first else { return }
    #expect(first.hasPrefix(position + ": "), "expected \(position), got \(first)", sourceLocation: location)
    for part in parts { #expect(first.contains(part), "expected '\(part)' in \(first)", sourceLocation: location) }
}

/// A folder that is removed with its last reference.
final class Folder {
    let path: String

    init() throws {
        let url = FileManager.default.temporaryDirectory.appending(path: "drydock-configuration-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        path = Paths.normal(url.path)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    @discardableResult
    func write(_ name: String, _ text: String) throws -> String {
        let file = path + "/" + name
        let folder = URL(filePath: file).deletingLastPathComponent()
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data(text.utf8).write(to: URL(filePath: file))
        return file
    }

    /// Loads a text as `main.yaml` of this folder.
    func load(_ text: String, environment: [String: String] = [:]) throws -> Configuration {
        try Configuration.load(path: write("main.yaml", text), environment: environment)
    }

    /// The errors of that, as `FILE:LINE:COL: message` with FILE relative to this folder.
    func errors(_ text: String, environment: [String: String] = [:]) -> [String] {
        do {
            _ = try load(text, environment: environment)
            return []
        } catch let failure as ConfigurationErrors {
            return failure.errors.map { $0.description.replacing(path + "/", with: "") }
        } catch {
            return ["unexpected: \(error)"]
        }
    }
}

/// Gives the tests of a suite one folder: where the disk is slow, a folder for each of a thousand cases takes most of
/// their time.
struct SharedKeyFolder: SuiteTrait, TestScoping {
    @TaskLocal static var current: KeyFolder?

    func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @Sendable @concurrent () async throws -> Void
    ) async throws {
        try await Self.$current.withValue(try KeyFolder()) { try await function() }
    }
}

/// A service that loads, as lines of a list under `services:`, with more keys for it (each line already indented by 4).
func service(_ name: String = "s", _ more: String...) -> String {
    (["  - name: \(name)", "    match: { prefix: /\(name) }", "    base_url: http://127.0.0.1:9"]
        + more.map { "    " + $0 })
        .joined(separator: "\n") + "\n"
}
