// `drydock jobs`: the batches that the daemon knows, and what can be done with them.

import ArgumentParser
import DrydockDaemon
import ProxyServer

struct Jobs: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "List, show, cancel, retry or remove batches.",
        subcommands: [List.self, Show.self, Cancel.self, Retry.self, Remove.self],
        defaultSubcommand: List.self
    )

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print one line for each job, the oldest first.")
        @OptionGroup var options: AdminOptions

        func run() throws {
            let answer = try options.client.request("GET", .jobs).successful()
            if options.json { return print(answer.text, terminator: "") }
            for job in try answer.decode(AdminJobs.self).jobs { print(job.line) }
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print one job, item by item.")
        @Argument(help: "The number of the job.") var id: String
        @OptionGroup var options: AdminOptions

        func run() throws {
            let answer = try JobFollower(client: options.client).whole(id)
            if options.json { return print(answer.text, terminator: "") }
            let job = try answer.decode(AdminJob.self)
            let isRun = job.kind == AdminJob.Kind.group.rawValue
            for item in job.items ?? [] { print(isRun ? item.callLine : item.line) }
            print(job.line)
        }
    }

    struct Cancel: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "End a job; items that are done stay done.")
        @Argument(help: "The number of the job.") var id: String
        @OptionGroup var options: AdminOptions
        func run() throws { try Jobs.act("POST", .cancelJob, id: id, options: options) }
    }

    struct Retry: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Try the items again that have failed or were cancelled."
        )
        @Argument(help: "The number of the job.") var id: String
        @OptionGroup var options: AdminOptions
        func run() throws { try Jobs.act("POST", .retryJob, id: id, options: options) }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Forget a job that is not under way; the responses that it stored stay."
        )
        @Argument(help: "The number of the job.") var id: String
        @OptionGroup var options: AdminOptions
        func run() throws { try Jobs.act("DELETE", .job, id: id, options: options) }
    }
    private static func act(_ method: String, _ path: AdminPath, id: String, options: AdminOptions) throws {
        try options.order(method, path, id: id) { (job: AdminJob) in job.line }
    }
}
