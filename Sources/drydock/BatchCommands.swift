// `drydock size` and `drydock prefetch`: how much a list would download, and downloading it ahead of the clients.

import ArgumentParser
import Drydock
import Foundation

/// What both commands take.
struct ListOptions: ParsableArguments {
    @Argument(help: "URLs as a client sends them: /github/users, http://localhost:8080/github/users, or an origin's.")
    var urls: [String] = []
    @Option(
        help: ArgumentHelp(
            "A file with more: a URL a line, or a JSON object a line with url, method, headers, body, force, seed and store; - is standard input. May be repeated.",
            valueName: "list"
        )
    )
    var file: [String] = []
    @Option(
        name: [.customShort("H"), .customLong("header")],
        help: "A field of every request, 'Name: value'; may be repeated."
    )
    var header: [String] = []
    @Flag(help: "Ask the origins, whatever is stored.")
    var force = false
    @Option(help: "Items under way at a time, 1 to 1000. Default: 10.")
    var concurrency: Int?
    @Flag(help: "One item after the other.")
    var serial = false

    var isEmpty: Bool { urls.isEmpty && file.isEmpty }

    func validate() throws {
        if let concurrency, !(1...1000 ~= concurrency) {
            throw ValidationError("--concurrency is \(concurrency); give a number from 1 to 1000")
        }
        if serial, concurrency != nil { throw ValidationError("--serial is --concurrency 1; give only one of them") }
        if file.count(where: { $0 == "-" }) > 1 { throw ValidationError("standard input can be read only once") }
        for field in header where !field.contains(":") || field.hasPrefix(":") {
            throw ValidationError("-H '\(field)' is no field; write 'Name: value'")
        }
    }

    func order() throws -> BatchOrder {
        var order = BatchOrder()
        order.urls = urls
        order.force = force
        order.concurrency = serial ? 1 : concurrency
        for field in header {
            let parts = field.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            order.headers[String(parts[0])] = parts[1].trimmingCharacters(in: .whitespaces)
        }
        for name in file {
            let data =
                name == "-"
                ? FileHandle.standardInput.readDataToEndOfFile() : FileManager.default.contents(atPath: name)
            guard let data else {
                throw Failure(message: "\(name) cannot be read; check that it is there, and its permissions")
            }
            guard let text = String(validating: data, as: UTF8.self) else {
                throw Failure(message: "\(name) is not in UTF-8; write it anew in UTF-8")
            }
            order.lists.append((name == "-" ? "standard input" : name, text))
        }
        return order
    }

    /// Has the daemon begin.
    func submit(_ path: String, _ order: BatchOrder, to client: AdminClient) throws -> JobDocument {
        let body: [UInt8]
        do { body = try order.body() } catch { throw Failure(message: "\(error)") }
        return try client.request("POST", path, body: body).successful().decode(JobDocument.self)
    }
}

struct Size: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "How many bytes a list would download; nothing is downloaded or changed.",
        discussion: """
            What is stored and fresh, and what the origin says is current by HEAD, needs no download. What has no known size, \
            and what fails, is told. With --save the daemon keeps what was found, and 'drydock prefetch --job ID' downloads it.
            """
    )
    @OptionGroup var list: ListOptions
    @Flag(help: "Keep the list as a job.")
    var save = false
    @OptionGroup var options: AdminOptions

    func validate() throws {
        if list.isEmpty { throw ValidationError("give URLs, or --file LIST") }
    }

    func run() throws {
        var order = try list.order()
        order.save = save
        let client = options.client
        let follower = JobFollower(client: client)
        let job = try list.submit("/v1/size", order, to: client)
        guard let ended = try follower.follow(job.id) else {
            _ = try client.request("POST", "/v1/jobs/\(job.id)/cancel")
            throw ExitCode(130)
        }
        let answer = try follower.whole(job.id)
        if !save { _ = try client.request("DELETE", "/v1/jobs/\(job.id)") }
        if options.json {
            print(answer.text, terminator: "")
        } else {
            for item in try answer.decode(JobDocument.self).items ?? [] where item.reason != nil { print(item.line) }
            print(ended.totals.sizes)
            if save { print("job \(job.id): 'drydock prefetch --job \(job.id)' downloads it") }
        }
        if !ended.isGood { throw ExitCode(1) }
    }
}

struct Prefetch: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Download a list into the cache, ahead of the clients.",
        discussion: """
            The daemon does it: with --detach, or after Ctrl-C, it goes on, and 'drydock jobs' tells how far it is. What is \
            stored and fresh is not downloaded again.
            """
    )
    enum OnError: String, ExpressibleByArgument, CaseIterable {
        case `continue`, stop
        case cancelRest = "cancel-rest"
    }

    @OptionGroup var list: ListOptions
    @Option(help: "What the failure of an item means for the others.")
    var onError: OnError = .continue
    @Option(help: ArgumentHelp("Download what 'size --save' has found, or what was stopped.", valueName: "id"))
    var job: String?
    @Flag(help: "With --job: ask again for what has failed or was cancelled. Else: once more for what fails.")
    var retryFailed = false
    @Flag(help: "Do not wait for the end.")
    var detach = false
    @OptionGroup var options: AdminOptions

    func validate() throws {
        if job == nil, list.isEmpty { throw ValidationError("give URLs, --file LIST, or --job ID") }
        if job != nil, !list.isEmpty { throw ValidationError("a job has its list; give either --job or URLs") }
        if job != nil, list.force || list.serial || list.concurrency != nil || !list.header.isEmpty {
            throw ValidationError("a job has its options already; give them with 'drydock size --save'")
        }
        if detach, retryFailed, job == nil {
            throw ValidationError(
                "--detach does not wait for failures; use 'drydock prefetch --job ID --retry-failed' later"
            )
        }
    }

    func run() throws {
        let client = options.client
        let begun = try begin(client)
        if detach {
            if options.json { return print(try follower(client).whole(begun.id).text, terminator: "") }
            return print("job \(begun.id): 'drydock jobs show \(begun.id)' tells how far it is")
        }
        var ended = try follow(begun.id, client)
        if retryFailed, job == nil, ended.totals.failed > 0 {
            _ = try client.request("POST", "/v1/jobs/\(begun.id)/retry").successful()
            ended = try follow(begun.id, client)
        }
        let answer = try follower(client).whole(begun.id)
        if options.json {
            print(answer.text, terminator: "")
        } else {
            for item in try answer.decode(JobDocument.self).items ?? [] where item.state == "failed" {
                print(item.line)
            }
            print("job \(ended.id) \(ended.state), \(ended.totals.summary)")
        }
        if !ended.isGood { throw ExitCode(1) }
    }

    private func begin(_ client: AdminClient) throws -> JobDocument {
        guard let job else {
            var order = try list.order()
            order.onError = onError.rawValue
            return try list.submit("/v1/prefetch", order, to: client)
        }
        if retryFailed {
            return try client.request("POST", "/v1/jobs/\(AdminClient.escape(job))/retry").successful().decode(
                JobDocument.self
            )
        }
        let body = try JSONEncoder().encode(["job": job])
        return try client.request("POST", "/v1/prefetch", body: Array(body)).successful().decode(JobDocument.self)
    }

    private func follower(_ client: AdminClient) -> JobFollower { JobFollower(client: client) }

    private func follow(_ id: String, _ client: AdminClient) throws -> JobDocument {
        guard let ended = try follower(client).follow(id) else {
            printError(
                "job \(id) goes on: 'drydock jobs show \(id)' tells how far it is, 'drydock jobs cancel \(id)' ends it"
            )
            throw ExitCode(130)
        }
        return ended
    }
}
