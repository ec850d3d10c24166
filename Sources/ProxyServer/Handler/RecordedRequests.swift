// Recordings as requests of clients: who asks for what a recording answers.

import DownloadCore
import EventLoop
import HTTPWire
package import ServiceCore

/// How recordings are checked.
package struct DriftQuestion: Sendable, Equatable {
    /// Only those of this service; nil for all.
    package var service: String?
    /// Sent with each request, such as credentials that clients send.
    package var fields: [RequestQuestion.Field] = []
    /// The names of fields that are compared, besides those that always are.
    package var compared: [String] = []

    package init() {}
}

/// A stored response that has become a recording.
package struct KeptRecording: Sendable {
    package let service: String
    /// The request that it answers, such as `GET /users/7`.
    package let request: String
    package let status: Int
    /// Bytes of its content.
    package let bytes: Int
    /// The beginning of the names of its two files.
    package let name: String
}

/// Asks about recordings on the loops of a server.
package struct RecordedRequests: Sendable {
    private let handlers: [LoopBox<ProxyHandler>]

    package init(on server: Server<ProxyHandler>) { handlers = server.handlers }

    /// Makes a recording of a stored response, on one of the loops; nil where the loop has ended.
    package func keep(_ question: RequestQuestion) async -> Result<KeptRecording, Problem>? {
        await handlers[0].run { handler, loop -> Result<KeptRecording, Problem> in
            do throws(Problem) {
                return .success(try await RecordedCalls(unsent: handler.unsent).keep(question, on: loop))
            } catch {
                return .failure(error)
            }
        }
    }

    /// Asks the origin of a recording, on the loop of the request.
    /// - Parameters:
    ///   - number: of the recording; the loops take turns by it.
    ///   - folder: the absolute path of the folder that it is in.
    /// - Returns: nil where the loop has ended.
    package func drift(
        of recording: Recording,
        number: Int,
        service: String,
        folder: String,
        _ question: DriftQuestion
    ) async -> DriftOutcome? {
        await handlers[number % handlers.count].run { handler, loop -> DriftOutcome? in
            let calls = RecordedCalls(unsent: handler.unsent)
            return await calls.drift(of: recording, service: service, folder: folder, question, on: loop)
        } ?? nil
    }
}

/// What recordings have to do with requests, on the loop; for the length of one question.
private struct RecordedCalls {
    let unsent: UnsentRequests

    private var plan: RoutePlan { unsent.plan }
    private var services: ServiceClient { unsent.routes.services }

    /// Asks the origin of a recording whether it still answers so.
    /// - Parameters:
    ///   - service: whose recording it is.
    ///   - folder: the absolute path of the folder that it is in.
    func drift(
        of recording: Recording,
        service: String,
        folder: String,
        _ question: DriftQuestion,
        on loop: isolated EventLoop
    ) async -> DriftOutcome {
        guard let route = plan.service(named: service) else {
            return .leftOut("the service is not configured any more")
        }
        guard let path = recording.key.pathOfGET, recording.key.body == nil else {
            return .leftOut("only a GET without content is asked again")
        }
        if recording.key.hasSecrets { return .leftOut("its request has a secret, which is not recorded") }
        let named = recording.key.fieldLines.map { RequestQuestion.Field(name: $0.name, value: $0.value) }
        for way in plan.ways(to: route.address.root + path, through: service) {
            var fields = question.fields
            fields += named.filter { own in !fields.contains { $0.name.lowercased() == own.name } }
            guard let call = try? call(way, fields), call.match.route === route else { continue }
            let check = DriftCheck(services)
            let compared = question.compared
            if let outcome = await check.outcome(of: recording, in: folder, for: call, comparing: compared, on: loop) {
                return outcome
            }
        }
        return .leftOut("no request leads to it: the routes are others than when it was recorded")
    }

    /// Makes a recording of the stored response that a request selects.
    /// - Throws: a 422 that says why there is none, or a 400 if the query makes no valid request.
    func keep(_ question: RequestQuestion, on loop: isolated EventLoop) async throws(Problem) -> KeptRecording {
        let call: ServiceCall
        if let service = question.service {
            guard plan.service(named: service) != nil else {
                throw .unknown(service: service, among: plan.services.map(\.plan.name))
            }
            guard let way = plan.ways(to: question.url, through: service).first else {
                throw Problem.badQuery("service '\(service)' does not lead to '\(question.url)'")
            }
            call = try self.call(way, question.fields)
        } else {
            let fields = Fields(question.fields.map { ($0.name, $0.value) })
            call = try unsent.call(BatchItem(url: question.url), fields)
        }
        do throws(KeepRefusal) {
            let recording = try await RecordingMaker(services).keep(call, on: loop)
            return KeptRecording(
                service: call.match.route.plan.name,
                request: recording.key.request,
                status: recording.status,
                bytes: recording.content.count,
                name: recording.key.name
            )
        } catch {
            switch error {
            case .refused(let why): throw Problem(status: 422, title: "Not kept", detail: why)
            case .notWritten(let path):
                let detail = "\(path) cannot be written; the log says why"
                throw Problem(status: 500, title: "Not written", detail: detail)
            }
        }
    }

    /// A GET as a client sends it.
    private func call(_ way: ClientWay, _ fields: [RequestQuestion.Field]) throws(Problem) -> ServiceCall {
        let question = RequestQuestion(url: way.target, fields: fields)
        let bytes = try question.bytes(host: way.host ?? unsent.listenerName) { unsent.isListener($0) }
        let (request, target, framing) = try unsent.parse(bytes)
        return ServiceCall(try unsent.match(request, target), framing, via: plan.via(request.version))
    }
}
