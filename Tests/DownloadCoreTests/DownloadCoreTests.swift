// Tests of DownloadCore.
