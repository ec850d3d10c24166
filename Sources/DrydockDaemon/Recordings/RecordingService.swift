// The commands about recordings: make them from stored responses, export them, and compare them with what origins
// answer now.

import CacheStore
import EventLoop
import HTTPWire
import Logging
import Policies
import ProxyServer
import ServiceCore

/// Answers the commands about recordings.
///
/// Sendable: it has no mutable state of its own.
final class RecordingService: DaemonFeature {
    /// The number of recordings that are compared at the same time.
    private static let atOnce = 4

    private let context: DaemonContext

    init(_ context: DaemonContext) { self.context = context }

    private static let ending = Problem(
        status: 503,
        title: "Ending",
        detail: "the daemon is ending, and takes no orders any more"
    )

    /// The services that a command is for.
    /// - Parameter name: the name of one service; nil for all.
    /// - Throws: a 404 for an unknown name.
    private func services(named name: String?) throws(Problem) -> [ServiceRoute] {
        let services = context.plan.services
        guard let name else { return services }
        guard let route = services.first(where: { $0.plan.name == name }) else {
            throw .unknown(service: name, among: services.map(\.plan.name))
        }
        return [route]
    }

    // MARK: - Recordings of stored responses

    func keep(_ question: RequestQuestion) async throws(Problem) -> AdminRecording {
        guard let result = await context.server.map(RecordedRequests.init)?.keep(question) else { throw Self.ending }
        let kept = try result.get()
        context.parts.log(.store).info(
            "recorded",
            metadata: ["service": "\(kept.service)", "request": "\(kept.request)"]
        )
        return AdminRecording(
            service: kept.service,
            request: kept.request,
            status: kept.status,
            bytes: kept.bytes,
            name: kept.name
        )
    }

    // MARK: - Export

    func exportRecordings(to path: String, service: String?) async throws(Problem) -> AdminSeedExport {
        let services = try services(named: service)
        let files = context.parts.files
        let opened = try? await files.run { Result { () throws(SeedError) in try SeedWriter(path, pool: files) } }
        guard let opened else { throw Self.ending }
        let writer: SeedWriter
        switch opened {
        case .success(let made): writer = made
        case .failure(let error): throw Problem(status: 422, title: "No seed folder", detail: "\(error)")
        }
        var done = AdminSeedExport()
        for route in services {
            for folder in route.recordingFolders { await export(folder, of: route, to: writer, &done) }
        }
        (done.written, done.bytes) = (writer.tally.written, Int(clamping: writer.tally.bytes))
        context.parts.log(.store).info(
            "recordings exported",
            metadata: ["path": "\(path)", "written": "\(done.written)"]
        )
        return done
    }

    private func export(
        _ folder: RecordingFolder,
        of route: ServiceRoute,
        to writer: SeedWriter,
        _ done: inout AdminSeedExport
    ) async {
        for name in await folder.names() where !context.isStopping {
            guard let recording = await folder.recording(named: name) else {
                done.failed += 1
                done.firstError = done.firstError ?? "\(name) cannot be used; the log says why"
                continue
            }
            guard let seed = recording.seed(service: route.plan.name, root: route.address.root) else {
                done.skipped += 1
                continue
            }
            do {
                try await writer.write(seed)
            } catch {
                done.failed += 1
                done.firstError = done.firstError ?? "\(recording.key.request): \(error)"
            }
        }
    }

    // MARK: - Comparison

    func drift(_ question: DriftQuestion) async throws(Problem) -> AdminDrift {
        let services = try services(named: question.service)
        guard let requests = context.server.map(RecordedRequests.init) else { throw Self.ending }
        var report = AdminDrift()
        for route in services {
            for folder in route.recordingFolders {
                await check(folder, of: route.plan.name, question, requests, &report)
            }
        }
        report.recordings.sort { ($0.service, $0.request) < ($1.service, $1.request) }
        context.parts.log(.store).info(
            "recordings checked",
            metadata: [
                "same": "\(report.same)", "changed": "\(report.changed)", "gone": "\(report.gone)",
                "unreachable": "\(report.unreachable)", "unreadable": "\(report.unreadable)",
                "left out": "\(report.leftOut)",
            ]
        )
        return report
    }

    /// Compares the recordings of a folder with the origin's answers, a few at a time; the rest is left out if the
    /// daemon ends.
    private func check(
        _ folder: RecordingFolder,
        of service: String,
        _ question: DriftQuestion,
        _ requests: RecordedRequests,
        _ report: inout AdminDrift
    ) async {
        let context = context
        var rest = await folder.names().enumerated().makeIterator()
        await withTaskGroup(of: AdminDrift.Recording?.self) { group in
            func addNext(_ group: inout TaskGroup<AdminDrift.Recording?>) {
                guard !context.isStopping, let (number, name) = rest.next() else { return }
                group.addTask {
                    guard let recording = await folder.recording(named: name) else {
                        return AdminDrift.Recording(service: service, request: name, state: .unreadable)
                    }
                    let outcome = await requests.drift(
                        of: recording,
                        number: number,
                        service: service,
                        folder: folder.path,
                        question
                    )
                    return AdminDrift.Recording(recording, of: service, outcome ?? .leftOut("the daemon is ending"))
                }
            }
            for _ in 0..<Self.atOnce { addNext(&group) }
            while let done = await group.next() {
                report.add(done)
                addNext(&group)
            }
        }
    }
}

extension ServiceRoute {
    /// The folders of the recordings of the service and of its endpoints, each once.
    fileprivate var recordingFolders: [RecordingFolder] {
        var seen: Set<String> = []
        let plans = [itself.request] + endpoints.map(\.request)
        return plans.compactMap { $0.recordings?.folder }.filter { seen.insert($0.path).inserted }
    }
}

extension AdminDrift {
    /// Counts a compared recording, and lists it if it differs.
    /// - Parameter recording: nil for one that is the same.
    fileprivate mutating func add(_ recording: Recording?) {
        guard let recording else { return same += 1 }
        switch recording.state {
        case .changed: changed += 1
        case .gone: gone += 1
        case .unreachable: unreachable += 1
        case .unreadable: unreadable += 1
        case .leftOut: leftOut += 1
        }
        recordings.append(recording)
    }
}

extension AdminDrift.Recording {
    /// The document of a compared recording; nil if it is the same.
    fileprivate init?(_ recording: Recording, of service: String, _ outcome: DriftOutcome) {
        self.init(service: service, request: recording.key.request, state: .changed)
        (recordedStatus, recordedAt) = (recording.status, recording.recordedAt)
        switch outcome {
        case .same: return nil
        case .changed(let drift):
            (status, content) = (drift.status, drift.content)
            fields = drift.fields.map { AdminDrift.Field(name: $0.name, recorded: $0.recorded, now: $0.now) }
        case .gone(let now): (state, status) = (.gone, now)
        case .unreachable(let why): (state, reason) = (.unreachable, why)
        case .leftOut(let why): (state, reason) = (.leftOut, why)
        }
    }
}

extension RecordingService {
    var routes: [AdminRoute] {
        [
            AdminRoute(.post, .recordings) { request async throws(Problem) in
                let query = request.query
                switch (query["keep"], query["export"]) {
                case (let url?, nil):
                    try request.check(["keep", "field", "service"])
                    let members = request.queryItems.map {
                        (name: $0.name == "keep" ? "url" : $0.name, value: $0.value)
                    }
                    guard !url.isEmpty else { throw Problem.badQuery("give keep=URL, as a client would send it") }
                    return try .json(await self.keep(try RequestQuestion(members: members)))
                case (nil, let path?):
                    try request.check(["export", "service"])
                    try AdminRequest.check(folder: path)
                    return try .json(await self.exportRecordings(to: path, service: query["service"]))
                default: throw Problem.badQuery("give either keep=URL or export=DIR")
                }
            },
            AdminRoute(.post, .drift) { request async throws(Problem) in
                try .json(await self.drift(try DriftQuestion(members: request.queryItems)))
            },
        ]
    }
}

extension DriftQuestion {
    /// Parses `service=`, at most once, and `field=Name: value` and `compare=NAME`, once for each field.
    /// - Throws: a 400 that names the mistake.
    init(members: [(name: String, value: String)]) throws(Problem) {
        self.init()
        for (name, value) in members {
            switch name {
            case "service" where service == nil: service = value
            case "field": fields.append(try RequestQuestion.field(value))
            case "compare" where !value.isEmpty: compared.append(value)
            default:
                throw .badQuery("\(name) is not known, empty, or given twice; there are service, field and compare")
            }
        }
    }
}

// MARK: - Documents

/// The answer of `POST /v1/drift`. No member has a value of a recorded content.
package struct AdminDrift: Codable, Sendable, Equatable {
    package struct Field: Codable, Sendable, Equatable {
        package var name: String
        /// The value in the recording; nil if it has no such field.
        package var recorded: String?
        /// The value in the origin's answer; nil if it has no such field.
        package var now: String?
    }

    package enum State: String, Codable, Sendable, CaseIterable {
        case changed, gone, unreachable
        /// The files of the recording cannot be used; the log has the reason.
        case unreadable
        /// The origin was not asked.
        case leftOut = "left-out"
    }

    /// A recording that differs from the origin's answer, or that could not be compared.
    package struct Recording: Codable, Sendable, Equatable {
        package var service: String
        /// The recorded request, such as `GET /users/7`; the name of the file if the recording is unreadable.
        package var request: String
        package var state: State
        /// The status in the recording; nil if it is unreadable.
        package var recordedStatus: Int?
        /// The time of the recording, in seconds since 1970; nil if it is unreadable.
        package var recordedAt: Int64?
        /// The status of the origin's answer, if it is another one.
        package var status: Int?
        /// The fields that differ.
        package var fields: [Field] = []
        /// The differences of the contents, such as `user.roles[2] is missing`.
        package var content: [String] = []
        /// The reason why the origin was not reached or not asked.
        package var reason: String?
    }

    package var same = 0
    package var changed = 0
    package var gone = 0
    package var unreachable = 0
    package var unreadable = 0
    package var leftOut = 0
    /// All compared recordings but those that are the same, sorted by service and request.
    package var recordings: [Recording] = []

    /// True if an origin's answer differs from its recording, or is gone.
    package var hasDrifted: Bool { changed + gone > 0 }
}

/// The answer of `POST /v1/recordings?keep=URL`.
package struct AdminRecording: Codable, Sendable, Equatable {
    package var service: String
    /// The recorded request, such as `GET /users/7`.
    package var request: String
    package var status: Int
    /// The number of bytes of the content.
    package var bytes: Int
    /// The prefix of the names of the recording's files.
    package var name: String
}
