import type { Tables } from '../tables.ts';

/**
 * Reads that may take long. They run on reader threads (`pool.ts`), each with a read-only connection, so that they do not
 * delay the event loop. A read is a method of a table, or a query over several tables; its arguments and its result are
 * plain data, as they are copied between threads.
 */
export interface Reader {
  /** Calls a method of a table. Rejects with ReadRejected, or with the error that the method threw. */
  table<Table extends ReadTable, Method extends ReadMethod<Table>>(
    accountId: string,
    table: Table,
    method: Method,
    ...args: MethodArgs<Table, Method>
  ): Promise<MethodResult<Table, Method>>;
  /** Runs a query, which sees one state of the database. */
  query<Args extends unknown[], Result>(
    accountId: string,
    query: ReadQuery<Args, Result | Promise<Result>>,
    ...args: Args
  ): Promise<Result>;
}

/** The account of reads without one, such as those of metrics. */
export const NO_ACCOUNT = '';

/** A named function over the tables. The program of the reader threads (reader.ts) lists all queries. */
export interface ReadQuery<Args extends unknown[], Result> {
  name: string;
  run(tables: Tables, ...args: Args): Result;
}

/**
 * Defines a query; its arguments and its result must be plain data. What it does after it has returned a promise, such as
 * parsing, is in the thread, too, but may not read tables: the state of the database is released by then.
 */
export function readQuery<Args extends unknown[], Result>(
  name: string,
  run: (tables: Tables, ...args: Args) => Result,
  ..._plain: IsPlain<Args | Awaited<Result>> extends true ? [] : ['arguments and result must be plain data']
): ReadQuery<Args, Result> {
  return { name, run };
}

/** The methods of tables that reader threads run. */
export const TABLE_READS = {
  accounts: ['page'],
  messages: ['list', 'statusCounts'],
  events: ['feed'],
  suppressions: ['list'],
  contacts: ['list'],
  hygiene: ['addresses', 'findings'],
  subscriptions: ['list', 'ofContact'],
  subscriptionGroups: ['list'],
  partials: ['list'],
  templates: ['list'],
  complianceTemplates: ['list'],
  campaigns: ['list'],
  segments: ['list'],
  sequences: ['list'],
  sequencePeople: ['list'],
  webhookDeliveries: ['list'],
  media: ['list', 'uses', 'body'],
  inboundRoutes: ['list'],
  inbound: ['list', 'get', 'source'],
  queue: ['count', 'countHeld', 'byDestination', 'byAccount', 'largestAccounts', 'counts', 'waiting'],
  keptMail: ['countUnread'],
  backlog: ['read'],
} as const satisfies { [Table in keyof Tables]?: readonly PlainMethod<Table>[] };

type ReadTable = keyof typeof TABLE_READS;
type ReadMethod<Table extends ReadTable> = (typeof TABLE_READS)[Table][number];

type MethodOf<Table extends keyof Tables, Method> = Method extends keyof Tables[Table]
  ? Tables[Table][Method]
  : never;
type MethodArgs<Table extends keyof Tables, Method> =
  MethodOf<Table, Method> extends (...args: infer Args) => unknown ? Args : never;
type MethodResult<Table extends keyof Tables, Method> =
  MethodOf<Table, Method> extends (...args: never) => infer Result ? Result : never;

/** Methods whose arguments and result can be copied between threads. */
type PlainMethod<Table extends keyof Tables> = {
  [Method in keyof Tables[Table]]: Tables[Table][Method] extends (...args: infer Args) => infer Result
    ? [IsPlain<Args | Result>] extends [true]
      ? Method
      : never
    : never;
}[keyof Tables[Table]];

/** A Buffer is not plain: its copy is a Uint8Array. */
type IsPlain<Value> = Value extends string | number | bigint | boolean | null | undefined
  ? true
  : Value extends ArrayBuffer
    ? true
    : Value extends (...args: never) => unknown
      ? false
      : Value extends readonly (infer Element)[]
        ? IsPlain<Element>
        : Value extends object
          ? { [Key in keyof Value]-?: IsPlain<Value[Key]> }[keyof Value]
          : false;

/** A read as the threads run it. */
export type ReadFunction = (tables: Tables, ...args: readonly unknown[]) => unknown;

/** The name of a method of a table among all reads. */
export function tableReadName(table: string, method: string): string {
  return `${table}.${method}`;
}

/** All reads by name. */
export function readsByName(queries: readonly ReadQuery<never[], unknown>[]): Map<string, ReadFunction> {
  const reads = new Map<string, ReadFunction>();
  for (const [table, methods] of Object.entries(TABLE_READS)) {
    for (const method of methods) {
      reads.set(tableReadName(table, method), (tables, ...args) => methodOf(tables, table, method)(...args));
    }
  }
  for (const { name, run } of queries) {
    if (reads.has(name)) throw new Error(`two reads are named ${name}`);
    // Sound: `Reader.query` passes a query's own arguments only.
    reads.set(name, run as ReadFunction);
  }
  return reads;
}

function methodOf(tables: Tables, table: string, method: string): (...args: readonly unknown[]) => unknown {
  // Sound: TABLE_READS names methods of tables, and `Reader.table` passes a method's own arguments only.
  const methods = tables[table as keyof Tables] as unknown as Record<
    string,
    (...args: readonly unknown[]) => unknown
  >;
  const found = methods[method];
  if (found === undefined) throw new Error(`there is no method ${tableReadName(table, method)}`);
  return found;
}

/** Runs reads on the calling thread: for commands and for tests. */
export function createLocalReader(tables: Tables): Reader {
  return {
    table: async (_accountId, table, method, ...args) =>
      // Sound: the result of exactly this method.
      methodOf(tables, table, method)(...args) as MethodResult<typeof table, typeof method>,
    query: async (_accountId, query, ...args) => query.run(tables, ...args),
  };
}
