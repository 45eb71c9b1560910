/** What stands between a row that is missed and its target: what was tried, and why it stops there. Shown where it is missed. */

export const REMARKS: Readonly<Record<string, string>> = {
  V1: 'The main thread takes twice the processor time of the bare limit, and three commits lie one behind the other in each run: accepted, the tool’s intent, the end. All processes here share two cores, and the load and the model take 0.8 ms a run of them on either side.',
  V2: 'A run is 4.4 writes of 16 statements into 14 B-trees beside its events, a key that is looked up, limits, a log line’s context, metrics, and what makes going on after a crash possible. It was six times the bare limit, and is what is left after: texts of SQL built once, the claim in the insertion’s transaction, no savepoints, batches that cross threads as one flat list, one parser for the models’ events. What remains has no peak: no function of ours takes more than 5 %.',
  V3: 'Ten times VoltAgent is what the bare limit reaches on this machine, which stores nothing and does nothing but the two calls: see the tables. What a machine with more cores shows is a question of V1.',
  V4: 'A sandbox costs processor time that a function call in the server’s process does not: two processes, five namespaces, six mounts, 1,340 page faults of Python (870 in the cell’s first process, 470 in its interpreter; nearly all of them copies of pages that reference counts are written to). On two cores that is the limit, with whatever number begun at once. Tried without gain: mapping the interpreter’s pages ahead of time (more is mapped than is used).',
  V5: 'See V4: page faults and namespaces are most of what is left of a start.',
  V6: 'Two durable commits stand before the first event, the acceptance and the tool’s intent, each with two changes of thread and an fsync: peers show what they have not stored. The model could be asked while the first commit is under way; then a run that nobody accepted might cost money.',
}
