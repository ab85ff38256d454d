import type { RunningDaemon } from './daemon.ts';

/* The SDKs of other providers, which are not part of the installation: see .ci/tools. */

/** What is used of them. */
export interface Sdks {
  ServerClient: new (
    token: string,
    options: { useHttps: boolean; requestHost: string },
  ) => {
    sendEmail(message: object): Promise<Record<string, unknown>>;
    sendEmailBatch(messages: object[]): Promise<Record<string, unknown>[]>;
    sendEmailWithTemplate(message: object): Promise<Record<string, unknown>>;
    sendEmailBatchWithTemplates(messages: object[]): Promise<Record<string, unknown>[]>;
  };
  MailService: new () => {
    setApiKey(key: string): void;
    client: {
      setDefaultRequest(name: string, value: string): void;
      setDefaultHeader(name: string, value: string): void;
    };
    send(
      mail: object,
      isMultiple?: boolean,
    ): Promise<[{ statusCode: number; headers: Record<string, string> }]>;
  };
  Mailgun: new (
    form: typeof FormData,
  ) => {
    client(options: { username: string; key: string; url: string }): {
      messages: { create(domain: string, message: object): Promise<{ id: string; message: string }> };
    };
  };
  SESv2Client: new (
    options: object,
  ) => {
    send(command: object): Promise<Record<string, unknown>>;
  };
  SendEmailCommand: new (input: object) => object;
  SendBulkEmailCommand: new (input: object) => object;
  Resend: new (
    key: string,
    options: { baseUrl: string },
  ) => {
    emails: {
      send(mail: object, options?: object): Promise<ResendAnswer>;
      get(id: string): Promise<ResendAnswer>;
      update(change: { id: string; scheduledAt: string }): Promise<ResendAnswer>;
      cancel(id: string): Promise<ResendAnswer>;
    };
    batch: { send(mails: object[]): Promise<ResendAnswer> };
  };
}

/** The SDK of Resend returns errors. */
interface ResendAnswer {
  data: Record<string, unknown> | null;
  error: { name: string; message: string; statusCode?: number } | null;
}

/** Imports them; to be called only where `requirePrograms('provider-sdks')` finds them. */
export async function loadSdks(): Promise<Sdks> {
  return import(new URL('../../.ci/tools/sdks.mjs', import.meta.url).href);
}

/** What a rejected call of an SDK has. */
export async function errorOf(call: Promise<unknown>): Promise<Record<string, unknown>> {
  return call.then(
    () => ({ resolved: true }),
    (error: Record<string, unknown>) => error,
  );
}

/** A key of the account that signs requests, as the AWS SDK has it. */
export async function signingPair(
  daemon: Pick<RunningDaemon, 'cli' | 'api'>,
): Promise<{ accessKeyId: string; secretAccessKey: string }> {
  const account = ['--account', daemon.api.accountId];
  const made = JSON.parse(
    await daemon.cli('key', 'create', ...account, '--scope', 'transactional', '--sigv4', '--json'),
  );
  return { accessKeyId: String(made.keyId), secretAccessKey: String(made.key) };
}
