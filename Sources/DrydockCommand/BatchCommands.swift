// `drydock size` and `drydock prefetch`: the size of a list's downloads, and downloading them before clients ask.

import ArgumentParser
import DownloadCore
import DrydockDaemon
import ProxyServer

/// The options of both commands.
struct ListOptions: ParsableArguments {
    @Argument(
        help: "URLs as a client sends them (/github/users, http://localhost:8080/github/users), or the origin's URLs."
    )
    var urls: [String] = []
    @Option(
        help: ArgumentHelp(
            "A file with more URLs. Each line has a URL, or a JSON object with url, method, headers, body, force, seed, store and file. - is standard input. May be repeated.",
            valueName: "list"
        ),
        completion: .file()
    )
    var file: [String] = []
    @Option(
        name: [.customShort("H"), .customLong("header")],
        help: "A field for every request, 'Name: value'; may be repeated."
    )
    var header: [String] = []
    @Flag(help: "Ask the origins even if a fresh response is stored.")
    var force = false
    @Option(help: "The number of items under way at the same time, 1 to 1000. Default: 10.")
    var concurrency: Int?
    @Flag(help: "Download one item after the other; the same as --concurrency 1.")
    var serial = false

    var isEmpty: Bool { urls.isEmpty && file.isEmpty }

    func validate() throws {
        if let concurrency, !(1...1000 ~= concurrency) {
            throw ValidationError("--concurrency is \(concurrency); give a number from 1 to 1000")
        }
        if serial, concurrency != nil { throw ValidationError("--serial is --concurrency 1; give only one of them") }
        if file.count(where: { $0 == "-" }) > 1 { throw ValidationError("standard input can be read only once") }
        for field in header where !field.contains(":") || field.hasPrefix(":") {
            throw ValidationError("-H '\(field)' is not a field; write 'Name: value'")
        }
    }

    func order() throws -> BatchOrder {
        var order = BatchOrder()
        order.urls = urls
        order.force = force
        order.concurrency = serial ? 1 : concurrency
        for field in header {
            let parts = field.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            order.headers[String(parts[0])] = parts[1].trimmed { $0.isWhitespace && !$0.isNewline }
        }
        for path in file {
            let name = path == "-" ? "standard input" : path
            do throws(BatchList.Malformed) {
                let text = path == "-" ? try BatchList.textOfInput(name) : try BatchList.text(of: path)
                order.lists.append((name, text))
            } catch {
                throw Failure(message: error.description)
            }
        }
        return order
    }

    /// Has the daemon begin a batch.
    func submit(_ path: AdminPath, _ order: BatchOrder, to client: AdminClient) throws -> AdminJob {
        let body: [UInt8]
        do { body = try order.body() } catch { throw Failure(message: "\(error)") }
        return try client.request("POST", path, body: body).successful().decode(AdminJob.self)
    }
}

struct Size: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show how many bytes a list would download, without downloading or changing anything.",
        discussion: """
            A resource needs no download if its stored response is fresh, or if the origin confirms it by HEAD. The command \
            lists resources of unknown size and failures. With --save the daemon keeps the list as a job, and \
            'drydock prefetch --job ID' downloads it.
            """
    )
    @OptionGroup var list: ListOptions
    @Flag(help: "Keep the list as a job, for 'drydock prefetch --job ID'.")
    var save = false
    @OptionGroup var options: AdminOptions

    func validate() throws {
        if list.isEmpty { throw ValidationError("give URLs, or --file LIST") }
    }

    func run() throws {
        var order = try list.order()
        order.save = save
        let client = try options.client
        let follower = JobFollower(client: client)
        let job = try list.submit(.size, order, to: client)
        guard let ended = try follower.follow(job.id) else {
            _ = try client.request("POST", .cancelJob, id: job.id)
            throw ExitCode(130)
        }
        let answer = try follower.whole(job.id)
        if save { client.sayWhich() } else { _ = try client.request("DELETE", .job, id: job.id) }
        if options.json {
            print(answer.text, terminator: "")
        } else {
            for item in try answer.decode(AdminJob.self).items ?? [] where item.reason != nil { print(item.line) }
            print(ended.progress.sizes)
            if save { print("job \(job.id): 'drydock prefetch --job \(job.id)' downloads it") }
        }
        if !ended.isGood { throw ExitCode(1) }
    }
}

struct Prefetch: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Download a list into the cache before clients ask for it.",
        discussion: """
            The daemon downloads the list. With --detach, or after Ctrl-C, it continues, and 'drydock jobs' shows its \
            progress. Fresh stored responses are not downloaded again.
            """
    )
    @OptionGroup var list: ListOptions
    @Option(help: "What happens to the other items when an item fails.")
    var onError: AdminJobRequest.OnError = .continue
    @Option(
        help: ArgumentHelp(
            "Download the items that 'size --save' found, or continue a job that was stopped.",
            valueName: "id"
        )
    )
    var job: String?
    @Flag(
        help:
            "With --job: try the items again that have failed or were cancelled. Otherwise: try failed items once more."
    )
    var retryFailed = false
    @Flag(help: "Do not wait until the job has finished.")
    var detach = false
    @OptionGroup var options: AdminOptions

    func validate() throws {
        if job == nil, list.isEmpty { throw ValidationError("give URLs, --file LIST or --job ID") }
        if job != nil, !list.isEmpty { throw ValidationError("a job has its own list; give either --job or URLs") }
        if job != nil, list.force || list.serial || list.concurrency != nil || !list.header.isEmpty {
            throw ValidationError("a job has its own options; give them to 'drydock size --save' instead")
        }
        if detach, retryFailed, job == nil {
            throw ValidationError(
                "--retry-failed has to wait for the end, and --detach does not wait; run 'drydock prefetch --job ID --retry-failed' later"
            )
        }
    }

    func run() throws {
        let client = try options.client
        let begun = try begin(client)
        client.sayWhich()
        if detach {
            if options.json { return print(try follower(client).whole(begun.id).text, terminator: "") }
            return print("job \(begun.id): 'drydock jobs show \(begun.id)' shows its progress")
        }
        var ended = try follow(begun.id, client)
        if retryFailed, job == nil, ended.totals.failed > 0 {
            _ = try client.request("POST", .retryJob, id: begun.id).successful()
            ended = try follow(begun.id, client)
        }
        let answer = try follower(client).whole(begun.id)
        if options.json {
            print(answer.text, terminator: "")
        } else {
            for item in try answer.decode(AdminJob.self).items ?? [] where item.state == "failed" {
                print(item.line)
            }
            print("job \(ended.id) \(ended.state), \(ended.progress.summary)")
        }
        if !ended.isGood { throw ExitCode(1) }
    }

    private func begin(_ client: AdminClient) throws -> AdminJob {
        guard let job else {
            var order = try list.order()
            order.onError = onError
            return try list.submit(.prefetch, order, to: client)
        }
        if retryFailed {
            return try client.request("POST", .retryJob, id: job).successful().decode(AdminJob.self)
        }
        var request = AdminJobRequest()
        request.job = job
        let body = try AdminJSON.encode(request)
        return try client.request("POST", .prefetch, body: body).successful().decode(AdminJob.self)
    }

    private func follower(_ client: AdminClient) -> JobFollower { JobFollower(client: client) }

    private func follow(_ id: String, _ client: AdminClient) throws -> AdminJob {
        guard let ended = try follower(client).follow(id) else {
            printError(
                "job \(id) continues: 'drydock jobs show \(id)' shows its progress, 'drydock jobs cancel \(id)' ends it"
            )
            throw ExitCode(130)
        }
        return ended
    }
}

extension AdminJobRequest.OnError: ExpressibleByArgument {}
