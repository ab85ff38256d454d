import type { operations, paths } from './api-types.ts';

/*
 * The operations of the public API, with the types of its OpenAPI document: `npm run api:types` writes api-types.d.ts, which
 * the check of the types does first. A path, a parameter or a field that the document does not have is an error there.
 */

/** An operation of the API that requires a key. */
export type ApiOperationId = Exclude<
  keyof operations,
  'getHealth' | 'getAlive' | 'getReady' | 'getMetrics' | 'checkTlsHost' | 'getInstance'
>;

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** The paths with an operation of this method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, unknown> ? P : never;
}[keyof paths];

type Operation<P extends PathOf<M>, M extends Method> = paths[P] extends Record<M, infer O> ? O : never;

type Json<T> = T extends { content: { 'application/json': infer Body } } ? Body : never;
type Success<R> = Json<R[Extract<keyof R, 200 | 201 | 202>]>;

/** `data` of a successful response. */
export type DataOf<P extends PathOf<M>, M extends Method = 'get'> =
  Operation<P, M> extends { responses: infer R } ? (Success<R> extends { data: infer D } ? D : never) : never;

/** Numbers in the path come from the address of a page, too. */
type PathValues<O> = O extends { parameters: { path: infer V } }
  ? { [K in keyof V]: V[K] extends number ? V[K] | string : V[K] }
  : object;
/** Filters come from the address of a page: the server checks their values. */
type QueryValues<O> = O extends { parameters: { query?: infer V } }
  ? { [K in keyof V]?: V[K] | string | undefined }
  : object;

/** The values of the parameters in the path and of the query. */
export type ParametersOf<P extends PathOf<M>, M extends Method = 'get'> = PathValues<Operation<P, M>> &
  QueryValues<Operation<P, M>>;

/** JSON leaves out what is undefined. */
type Sent<T> = T extends object
  ? { [K in keyof T]: Sent<T[K]> | (object extends Pick<T, K> ? undefined : never) }
  : T;

/** The body of the request. */
export type BodyOf<P extends PathOf<M>, M extends Method> =
  Operation<P, M> extends { requestBody?: infer B } ? Sent<Json<B>> : never;

/** Left out where nothing is required. */
export type Optional<T> = object extends T ? [parameters?: T] : [parameters: T];

/** The address of an operation or a page: values of names in braces are in the path, all others that are not empty in the query. */
export function addressOf(path: string, values: object = {}): string {
  const query = new URLSearchParams();
  let address = path;
  const entries: [string, unknown][] = Object.entries(values);
  for (const [name, value] of entries) {
    const text = typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);
    if (address.includes(`{${name}}`)) address = address.replace(`{${name}}`, () => encodeURIComponent(text));
    else if (text !== '') query.set(name, text);
  }
  return query.size === 0 ? address : `${address}?${query}`;
}
