// The public symbols of the library, as Documentation/project/api.txt lists them: what they throw, and what errors are.

import Drydock
import DrydockServices
import DrydockTesting
import Foundation
import HTTPTypes
import LibrarySupport
import Testing

@Suite struct PublicSymbolTests {
    /// The list, which `.ci/api-list --check` holds to the sources.
    private static let lines: [String] = {
        let file = URL(filePath: #filePath).appending(path: "../../../Documentation/project/api.txt")
        let text = (try? String(contentsOf: file.standardizedFileURL, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").map(String.init)
    }()

    /// What throws whatever somebody else decides: closures and resources of the program, and the protocols of others.
    private static let untyped: Set<String> = [
        // Closures of the program, and what calls them.
        "RequestBody.stream(length:contentType:_:)", "ResponseFormat.init(accept:expectation:read:)",
        "ResponseFormat.map(_:)", "ResponseFormat.read(_:)", "Work.init(_:priority:retry:method:perform:)",
        "Endpoint.init(_:method:parameters:encoding:body:)", "Work.map(_:)", "WorkChain.then(_:)",
        "WorkChain.thenIfNeeded(_:)", "Resource.endpoint",
        // Codable, and decoders and encoders that the program brings.
        "JSONValue.decode(_:decoder:)", "JSONValue.encode(to:)", "JSONValue.init(from:)", "Parameters.encode(to:)",
        "ScriptedAnswer.json(encoding:with:status:)",
        // Service, Clock, and waits of a test that end with it.
        "DownloadManager.run()", "ManualClock.sleep(until:tolerance:)", "ManualClock.waitForSleepers(_:)",
        "ScriptedTransport.waitForRequests(_:)",
    ]

    @Test func whatThrowsSaysWhat() {
        #expect(Self.lines.count > 1000)
        var found: Set<String> = []
        for line in Self.lines where line.firstMatch(of: #/\bthrows\b(?!\()/#) != nil {
            let name = line.split(separator: "  ").dropFirst().first.map(String.init) ?? line
            found.insert(name.trimmingCharacters(in: .whitespaces))
        }
        #expect(found.subtracting(Self.untyped).sorted() == [], "say what they throw: throws(SomeError)")
        #expect(Self.untyped.subtracting(found).sorted() == [], "they are no longer there")
        #expect(Self.lines.count { $0.contains("throws(") } > 60)
    }

    // MARK: - The table of errors

    /// One case of ``ServiceError``, and what the three libraries called it.
    private struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let tabResourceLoader: String?
        let mmNetworkingKit: String?
        let docker: String?
        var testDescription: String { name }
    }

    /// By the page `Errors.md` of the documentation.
    private static let table: [Row] = {
        let file = URL(filePath: #filePath).appending(
            path: "../../../Sources/DrydockServices/DrydockServices.docc/Errors.md"
        )
        let text = (try? String(contentsOf: file.standardizedFileURL, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").compactMap { line in
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            guard cells.count == 4, cells[0].hasPrefix("``ServiceError/") else { return nil }
            func words(_ cell: String) -> String? { cell == "—" ? nil : cell }
            let name = cells[0].dropFirst("``ServiceError/".count).prefix { $0 != "(" && $0 != "`" }
            return Row(
                name: String(name),
                tabResourceLoader: words(cells[1]),
                mmNetworkingKit: words(cells[2]),
                docker: words(cells[3])
            )
        }
    }()

    private static func failure<R: DrydockServices.Resource>(of resource: R, _ manager: ServiceManager) async -> String
    {
        switch await Task(operation: { () throws(ServiceError) in try await manager.call(resource) }).result {
        case .success: "none"
        case .failure(let error): (error as? ServiceError)?.name ?? "\(error)"
        }
    }

    /// What really fails, and the case that it is.
    @Test func eachCaseIsWhatItsRowSays() async throws {
        struct Unencodable: Encodable {
            func encode(to encoder: any Encoder) throws { throw Broken() }
        }
        struct Failing: DrydockServices.Resource {
            typealias Model = String
            var endpoint: Endpoint { get throws { try .post("/x", body: .json(Unencodable())) } }
            var format: ResponseFormat<String> { .text }
        }
        let (manager, transport) = makeServices { configuration in
            configuration.hooks.shouldStart = { $0.location == "/vetoed" ? "no" : nil }
        }
        transport.answer(nil, "/status", with: .text("no", status: .notFound))
        transport.answer(nil, "/mapping", with: .text("no JSON"))
        transport.answer(nil, "/transport", with: .failure(.closed))
        func caseOf(_ resource: some DrydockServices.Resource) async -> String {
            await Self.failure(of: resource, manager)
        }
        let names = [
            await caseOf(HTTPResource(.get("/a/:id", path: ["id": ".."]), .text)),
            await caseOf(HTTPResource(Endpoint("/a/:id"), .text)),
            await caseOf(Failing()), await caseOf(HTTPResource("/vetoed", .text)),
            await caseOf(HTTPResource("/transport", .text)), await caseOf(HTTPResource("/status", .text)),
            await caseOf(HTTPResource("/mapping", ResponseFormat<JSONValue>.json)),
        ]
        #expect(
            names == [
                "invalidRequest", "missingParameter", "encoding", "vetoed", "transport", "status", "mapping",
            ]
        )
        #expect(Set(Self.table.map(\.name)) == Set(names + ["cancelled"]), "a row for each case, and no other")
    }

    /// Every error that the three libraries had has its row.
    @Test func everyOldErrorIsInTheTable() {
        let tab = Self.table.compactMap(\.tabResourceLoader).joined(separator: " ")
        for name in [
            "couldNotCreateURLRequest", "noHTTPURLResponse", "sessionError(error:)", "statusCodeError(statusCode:)",
            "statusCodeCustomError(statusCode:error:)", "parsingModel(error:)", "noDataProvided",
        ] { #expect(tab.contains("`\(name)`"), "\(name)") }
        let mm = Self.table.compactMap(\.mmNetworkingKit).joined(separator: " ")
        for name in ["MMHTTPTaskServerError", "MMHTTPTaskResponseParsedError", "NSURLErrorDomain"] {
            #expect(mm.contains("`\(name)`"), "\(name)")
        }
        let docker = Self.table.compactMap(\.docker).joined(separator: " ")
        for name in [
            "generic", "underlying", "missingResponse", "invalidURL", "pathParameterNotFound", "encoding",
            "parameterEncoding", "decoding",
        ] { #expect(docker.contains("`.\(name)`"), "\(name)") }
    }
}
