export { type BatchResult, type CallOptions, Postrider, type PostriderOptions } from './client.ts';
export { type ErrorDetail, PostriderError } from './error.ts';
export type {
  DataOf,
  InputOf,
  Method,
  PagedPath,
  PathOf,
  QueryOf,
  Schemas,
  SendPath,
} from './operations.ts';
export { type VerifyOptions, verifyWebhook, type WebhookCall, WebhookError } from './webhook.ts';
