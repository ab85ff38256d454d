import type { components, paths } from './api-types.ts';

/*
 * The operations of the API, with the types of its OpenAPI document. `npm run build` writes api-types.ts.
 */

/** The schemas of the OpenAPI document, by name. */
export type Schemas = components['schemas'];

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** The paths with an operation of this method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, unknown> ? P : never;
}[keyof paths];

type Operation<M extends Method, P extends PathOf<M>> = paths[P] extends Record<M, infer O> ? O : never;

type HeaderOf<O> = O extends { parameters: { header?: infer H } } ? keyof NonNullable<H> : never;

/** The paths whose operations send mail: a request that is repeated with the same `Idempotency-Key` sends nothing again. */
export type SendPath = {
  [P in PathOf<'post'>]: 'Idempotency-Key' extends HeaderOf<Operation<'post', P>> ? P : never;
}[PathOf<'post'>];

/** The parameters of the query. */
export type QueryOf<M extends Method, P extends PathOf<M>> =
  Operation<M, P> extends { parameters: { query?: infer Q } } ? NonNullable<Q> : object;

/** The paths of lists that have pages. */
export type PagedPath = {
  [P in PathOf<'get'>]: 'lastKey' extends keyof QueryOf<'get', P> ? P : never;
}[PathOf<'get'>];

type PathPart<O> = O extends { parameters: { path: infer V } } ? { path: V } : object;

type QueryPart<O> = O extends { parameters: { query: infer Q } }
  ? { query: Q }
  : O extends { parameters: { query?: infer Q } }
    ? { query?: NonNullable<Q> }
    : object;

/** Files are sent as they are; images have a type of their own each, so that a form is never needed. */
type FileType<C> = Exclude<keyof C, 'application/json' | 'multipart/form-data'>;

type BodyOfContent<C> =
  | (C extends { 'application/json': infer Body } ? { body: Body } : never)
  | ([FileType<C>] extends [never]
      ? never
      : { body: string | Uint8Array<ArrayBuffer> | Blob; contentType: FileType<C> });

type BodyPart<O> = O extends { requestBody: { content: infer C } }
  ? BodyOfContent<C>
  : O extends { requestBody?: { content: infer C } }
    ? BodyOfContent<C> | { body?: never }
    : object;

type SendPart<P> = P extends SendPath
  ? {
      /** Default: a new UUID. Use one that belongs to the business event, such as an order number, to send once across restarts. */
      idempotencyKey?: string;
    }
  : object;

/** What an operation needs: values of the path and the query, and the body. */
export type InputOf<M extends Method, P extends PathOf<M>> = PathPart<Operation<M, P>> &
  QueryPart<Operation<M, P>> &
  BodyPart<Operation<M, P>> &
  (M extends 'post' ? SendPart<P> : object);

type ResultOfType<Type, Body> = Type extends 'application/json'
  ? Body extends { success: true; data: infer Data }
    ? Data
    : Body
  : Type extends `text/${string}`
    ? string
    : Uint8Array;

type ResultOf<R> = R extends { content: infer C }
  ? { [T in keyof C]: ResultOfType<T, C[T]> }[keyof C]
  : undefined;

/** What an operation returns: `data` of JSON, the text of `text/…`, the bytes of everything else. */
export type DataOf<M extends Method, P extends PathOf<M>> =
  Operation<M, P> extends { responses: infer R }
    ? ResultOf<R[Extract<keyof R, 200 | 201 | 202 | 204>]>
    : never;
