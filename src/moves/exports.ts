import * as z from 'zod';
import type { SuppressionService } from '../suppression/import.ts';
import type { HandlebarsDialect } from './handlebars.ts';

/*
 * The files that other providers export: by which fields an entry is recognized, and what it is here. An entry is what the
 * documented API of the provider returns; fields that are not named are ignored.
 */

export const PROVIDER_NAMES = ['postmark', 'sendgrid', 'mailgun', 'resend', 'ses', 'listmonk'] as const;
export type ProviderName = (typeof PROVIDER_NAMES)[number];

/** What a file has. */
export type ExportKind =
  | 'suppressions'
  | 'domains'
  | 'templates'
  | 'webhooks'
  | 'contacts'
  | 'lists'
  | 'names of templates'
  | 'event destinations'
  | 'subscriptions of topics';

export interface DomainItem {
  kind: 'domain';
  name: string;
  /** Why it cannot be a domain here. */
  fault?: string;
}

/** A template as the provider has it. */
export interface TemplateItem {
  kind: 'template';
  /** What programs of the account name it by. */
  name: string;
  /** What people call it. */
  title: string;
  language: HandlebarsDialect | 'go';
  type: 'transactional' | 'marketing' | null;
  subject: string | null;
  html: string | null;
  text: string | null;
  fallbacks?: ReadonlyMap<string, string>;
  /** Postmark: the alias of the layout around it. */
  layout?: string | null;
  /** It is a layout: of Postmark, inserted into its templates; of listmonk, a partial. */
  isLayout?: boolean;
  /** Why it cannot be moved. */
  fault?: string;
}

export interface WebhookItem {
  kind: 'webhook';
  url: string;
  events: readonly string[];
  /** Events of the provider that we do not have. */
  unmapped: readonly string[];
  stream: 'transactional' | 'marketing' | null;
  headers?: Readonly<Record<string, string>>;
}

export interface ListItem {
  kind: 'list';
  name: string;
  description: string | null;
  tags: readonly string[];
  /** Whether members who have not confirmed receive mail. */
  isSingle: boolean;
}

export interface TopicItem {
  kind: 'topic';
  topic: string;
  events: readonly string[];
  unmapped: readonly string[];
}

export interface EndpointItem {
  kind: 'endpoint';
  topic: string;
  url: string;
}

export type ExportItem = DomainItem | TemplateItem | WebhookItem | ListItem | TopicItem | EndpointItem;

/** A person in a list of contacts. */
export interface PersonItem {
  email: string;
  /** In the form of an NDJSON import. */
  profile: Readonly<Record<string, unknown>>;
  groups: readonly {
    list: string;
    isActive: boolean;
    isConfirmed: boolean;
    isSingle: boolean | null;
    details: string;
  }[];
  /** Why the person must not get mail: marketing mail for `unsubscribe`, else any. */
  suppressed: 'manual' | 'unsubscribe' | null;
}

/** A form of entries. */
export interface ExportForm {
  kind: ExportKind;
  /** The lists that have them; null: a document. */
  lists: readonly (string | null)[];
  /** Fields that every entry has. */
  keys: readonly string[];
  /** Whether an entry with these fields is of the form. Default: it is. */
  when?(entry: Readonly<Record<string, unknown>>): boolean;
  /** The items of an entry, or what is wrong with it. */
  read?(entry: unknown): ExportItem[] | string;
  /** A person, or what is wrong with the entry. */
  person?(entry: unknown): PersonItem | string;
  /** Renames fields of a suppression. */
  names?: Readonly<Record<string, string>>;
  /** Nothing can be moved: what to export in its place. */
  instead?: string;
}

export interface Provider {
  title: string;
  service: SuppressionService | null;
  forms: readonly ExportForm[];
}

/** A form whose entries have a schema. */
function form<Entry>(
  kind: ExportKind,
  lists: readonly (string | null)[],
  keys: readonly string[],
  schema: z.ZodType<Entry>,
  read: (entry: Entry) => ExportItem[],
): ExportForm {
  return { kind, lists, keys, read: parsed(schema, read) };
}

/** Parses with a schema; a string: what is wrong. */
function parsed<Entry, Result>(schema: z.ZodType<Entry>, read: (entry: Entry) => Result) {
  return (entry: unknown): Result | string => {
    const result = schema.safeParse(entry);
    if (result.success) return read(result.data);
    const [issue] = result.error.issues;
    return `${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'is invalid'}`;
  };
}

const text = z.string().max(2 * 1024 * 1024);
const optionalText = text.nullish();
const filled = (value: string | null | undefined): string | null => (value ? value : null);

/** The events of a provider as ours. */
function mapEvents(table: Readonly<Record<string, string>>, names: readonly string[]) {
  const events = new Set<string>();
  const unmapped: string[] = [];
  for (const name of names) {
    const event = Object.hasOwn(table, name) ? table[name] : undefined;
    if (event === undefined) unmapped.push(name);
    else events.add(event);
  }
  return { events: [...events], unmapped };
}

// Postmark: https://postmarkapp.com/developer

const POSTMARK_EVENTS = {
  Open: 'email_opened',
  Click: 'email_clicked',
  Delivery: 'email_delivered',
  Bounce: 'email_bounced',
  SpamComplaint: 'email_complained',
  SubscriptionChange: 'email_unsubscribed',
};
const POSTMARK_STREAMS: Readonly<Record<string, 'transactional' | 'marketing'>> = {
  outbound: 'transactional',
  broadcast: 'marketing',
};

const postmark: Provider = {
  title: 'Postmark',
  service: 'postmark',
  forms: [
    { kind: 'suppressions', lists: ['Suppressions'], keys: ['EmailAddress', 'SuppressionReason'] },
    form('domains', ['Domains', null], ['Name', 'DKIMVerified'], z.object({ Name: text }), ({ Name }) => [
      { kind: 'domain', name: Name },
    ]),
    form(
      'templates',
      [null, 'Templates'],
      ['TemplateId', 'Name', 'HtmlBody'],
      z.object({
        TemplateId: z.number(),
        Name: text,
        Alias: optionalText,
        Subject: optionalText,
        HtmlBody: optionalText,
        TextBody: optionalText,
        TemplateType: optionalText,
        LayoutTemplate: optionalText,
        Active: z.boolean().nullish(),
      }),
      (entry) => [
        {
          kind: 'template',
          name: filled(entry.Alias) ?? String(entry.TemplateId),
          title: entry.Name,
          language: 'postmark',
          type: null,
          subject: filled(entry.Subject),
          html: filled(entry.HtmlBody),
          text: filled(entry.TextBody),
          layout: filled(entry.LayoutTemplate),
          isLayout: entry.TemplateType === 'Layout',
          ...(entry.Active === false ? { fault: 'it is not active' } : {}),
        },
      ],
    ),
    {
      kind: 'names of templates',
      lists: ['Templates'],
      keys: ['TemplateId', 'Name'],
      instead: 'export each of them: GET /templates/{id}',
    },
    form(
      'webhooks',
      ['Webhooks', null],
      ['Url', 'Triggers'],
      z.object({
        Url: text,
        MessageStream: optionalText,
        HttpAuth: z.object({ Username: optionalText, Password: optionalText }).nullish(),
        HttpHeaders: z.array(z.object({ Name: text, Value: text })).nullish(),
        Triggers: z.record(text, z.object({ Enabled: z.boolean().nullish() }).nullish()),
      }),
      ({ Url, MessageStream, HttpAuth, HttpHeaders, Triggers }) => {
        const enabled = Object.entries(Triggers).flatMap(([name, one]) =>
          one?.Enabled === true ? [name] : [],
        );
        const { Username, Password } = HttpAuth ?? {};
        const authorization = Username
          ? { Authorization: `Basic ${Buffer.from(`${Username}:${Password ?? ''}`).toString('base64')}` }
          : {};
        return [
          {
            kind: 'webhook',
            url: Url,
            ...mapEvents(POSTMARK_EVENTS, enabled),
            stream: POSTMARK_STREAMS[MessageStream ?? ''] ?? null,
            headers: {
              ...Object.fromEntries((HttpHeaders ?? []).map(({ Name, Value }) => [Name, Value])),
              ...authorization,
            },
          },
        ];
      },
    ),
  ],
};

// SendGrid: https://www.twilio.com/docs/sendgrid/api-reference

const SENDGRID_EVENTS = {
  processed: 'email_sent',
  delivered: 'email_delivered',
  deferred: 'email_delayed',
  bounce: 'email_bounced',
  dropped: 'email_suppressed',
  open: 'email_opened',
  click: 'email_clicked',
  spam_report: 'email_complained',
  unsubscribe: 'email_unsubscribed',
  group_unsubscribe: 'email_unsubscribed',
};
const SENDGRID_EVENT_NAMES = [...Object.keys(SENDGRID_EVENTS), 'group_resubscribe', 'account_status_change'];

const sendgrid: Provider = {
  title: 'SendGrid',
  service: 'sendgrid',
  forms: [
    { kind: 'suppressions', lists: [''], keys: ['email', 'created'] },
    { kind: 'suppressions', lists: [''], keys: ['email', 'group_id', 'created_at'] },
    form(
      'domains',
      ['', null, 'result'],
      ['domain', 'subdomain', 'valid'],
      z.object({ domain: text }),
      ({ domain }) => [{ kind: 'domain', name: domain }],
    ),
    form(
      'templates',
      [null, 'templates', 'result'],
      ['id', 'name', 'versions'],
      z.object({
        id: text,
        name: text,
        generation: optionalText,
        versions: z.array(
          z.object({
            active: z.union([z.number(), z.boolean()]).nullish(),
            subject: optionalText,
            html_content: optionalText,
            plain_content: optionalText,
          }),
        ),
      }),
      ({ id, name, generation, versions }) => {
        const version = versions.find(({ active }) => active === 1 || active === true);
        const html = filled(version?.html_content);
        const plain = filled(version?.plain_content);
        const fault =
          generation === 'legacy'
            ? 'it is a legacy template: convert it to a dynamic template first'
            : version === undefined
              ? 'it has no active version'
              : html === null && plain === null
                ? 'the file has no content: export each template, GET /v3/templates/{id}'
                : null;
        return [
          {
            kind: 'template',
            name: id,
            title: name,
            language: 'sendgrid',
            type: null,
            subject: filled(version?.subject),
            html,
            text: plain,
            ...(fault === null ? {} : { fault }),
          },
        ];
      },
    ),
    form(
      'webhooks',
      ['webhooks', null],
      ['url', 'spam_report', 'delivered'],
      z.looseObject({ url: text }),
      (entry) => [
        {
          kind: 'webhook',
          url: entry.url,
          ...mapEvents(
            SENDGRID_EVENTS,
            SENDGRID_EVENT_NAMES.filter((name) => entry[name] === true),
          ),
          stream: null,
        },
      ],
    ),
  ],
};

// Mailgun: https://documentation.mailgun.com/docs/mailgun/api-reference

const MAILGUN_EVENTS = {
  accepted: 'email_sent',
  delivered: 'email_delivered',
  temporary_fail: 'email_delayed',
  permanent_fail: 'email_bounced',
  complained: 'email_complained',
  opened: 'email_opened',
  clicked: 'email_clicked',
  unsubscribed: 'email_unsubscribed',
};

const mailgunVersion = z
  .object({
    template: optionalText,
    engine: optionalText,
    headers: z.union([z.record(text, z.unknown()), text]).nullish(),
  })
  .nullish();
const mailgunTemplate = z.object({ name: text, version: mailgunVersion });

function readMailgunTemplate({ name, version }: z.output<typeof mailgunTemplate>): ExportItem[] {
  const headers = typeof version?.headers === 'object' ? version.headers : null;
  const subject = Object.entries(headers ?? {}).find(([header]) => header.toLowerCase() === 'subject')?.[1];
  const html = filled(version?.template);
  const fault =
    html === null
      ? 'the file has no content: export with active=yes'
      : version?.engine === 'go'
        ? 'its engine is go: convert it to handlebars first'
        : null;
  return [
    {
      kind: 'template',
      name,
      title: name,
      language: 'mailgun',
      type: null,
      subject: typeof subject === 'string' ? filled(subject) : null,
      html,
      text: null,
      ...(fault === null ? {} : { fault }),
    },
  ];
}

const mailgun: Provider = {
  title: 'Mailgun',
  service: 'mailgun',
  forms: [
    {
      kind: 'suppressions',
      lists: ['items'],
      keys: ['address', 'created_at'],
      // Mailing lists and their members have addresses, too.
      when: (entry) => !('access_level' in entry) && !('subscribed' in entry),
    },
    form('domains', ['items'], ['name', 'state'], z.object({ name: text }), ({ name }) => [
      {
        kind: 'domain',
        name,
        ...(/\.mailgun\.(?:org|net)$/.test(name) ? { fault: 'is a domain of Mailgun' } : {}),
      },
    ]),
    form('templates', ['items'], ['name', 'createdAt'], mailgunTemplate, readMailgunTemplate),
    form('templates', [null], ['template'], z.object({ template: mailgunTemplate }), ({ template }) =>
      readMailgunTemplate(template),
    ),
    form(
      'webhooks',
      [null],
      ['webhooks'],
      z.object({
        webhooks: z.record(text, z.object({ urls: z.array(text).nullish(), url: optionalText }).nullish()),
      }),
      ({ webhooks }) =>
        Object.entries(webhooks).flatMap(([name, entry]) => {
          const urls = entry?.urls ?? (entry?.url ? [entry.url] : []);
          return urls.map(
            (url): WebhookItem => ({
              kind: 'webhook',
              url,
              ...mapEvents(MAILGUN_EVENTS, [name]),
              stream: null,
            }),
          );
        }),
    ),
  ],
};

// Resend: https://resend.com/docs/api-reference

const RESEND_EVENTS = {
  'email.sent': 'email_sent',
  'email.delivered': 'email_delivered',
  'email.delivery_delayed': 'email_delayed',
  'email.bounced': 'email_bounced',
  'email.complained': 'email_complained',
  'email.opened': 'email_opened',
  'email.clicked': 'email_clicked',
  'email.failed': 'email_failed',
  'email.suppressed': 'email_suppressed',
  'email.received': 'email_received',
  'domain.deleted': 'domain_deleted',
};

const resend: Provider = {
  title: 'Resend',
  service: 'resend',
  forms: [
    {
      kind: 'suppressions',
      lists: ['data'],
      keys: ['email', 'reason'],
      when: (entry) => !('unsubscribed' in entry),
    },
    { kind: 'suppressions', lists: ['data'], keys: ['email', 'origin'], names: { origin: 'reason' } },
    {
      kind: 'contacts',
      lists: ['data'],
      keys: ['email', 'unsubscribed'],
      person: parsed(
        z.object({
          email: text,
          first_name: optionalText,
          last_name: optionalText,
          unsubscribed: z.union([z.boolean(), z.enum(['true', 'false'])]).nullish(),
        }),
        ({ email, first_name, last_name, unsubscribed }): PersonItem => ({
          email,
          profile: {
            email,
            ...(filled(first_name) === null ? {} : { firstName: first_name }),
            ...(filled(last_name) === null ? {} : { lastName: last_name }),
          },
          groups: [],
          suppressed: String(unsubscribed) === 'true' ? 'unsubscribe' : null,
        }),
      ),
    },
    form('domains', ['data'], ['name', 'status', 'region'], z.object({ name: text }), ({ name }) => [
      { kind: 'domain', name },
    ]),
    form(
      'templates',
      [null],
      ['id', 'name', 'html', 'status'],
      z.object({
        id: text,
        name: text,
        alias: optionalText,
        subject: optionalText,
        html: optionalText,
        text: optionalText,
        variables: z
          .array(z.object({ key: text, fallback_value: z.union([text, z.number(), z.boolean()]).nullish() }))
          .nullish(),
      }),
      (entry) => [
        {
          kind: 'template',
          name: filled(entry.alias) ?? entry.id,
          title: entry.name,
          language: 'resend',
          type: null,
          subject: filled(entry.subject),
          html: filled(entry.html),
          text: filled(entry.text),
          fallbacks: new Map(
            (entry.variables ?? []).flatMap(({ key, fallback_value: value }) =>
              value === null || value === undefined || value === '' ? [] : [[key, String(value)]],
            ),
          ),
        },
      ],
    ),
    {
      kind: 'names of templates',
      lists: ['data'],
      keys: ['id', 'name', 'published_at'],
      instead: 'export each of them: GET /templates/{id}',
    },
    form(
      'webhooks',
      ['data', null],
      ['endpoint', 'events'],
      z.object({ endpoint: text, events: z.array(text).nullish() }),
      ({ endpoint, events }) => [
        { kind: 'webhook', url: endpoint, ...mapEvents(RESEND_EVENTS, events ?? []), stream: null },
      ],
    ),
  ],
};

// Amazon SES: https://docs.aws.amazon.com/ses/latest/APIReference-V2

const SES_EVENTS = {
  SEND: 'email_sent',
  DELIVERY: 'email_delivered',
  DELIVERY_DELAY: 'email_delayed',
  BOUNCE: 'email_bounced',
  COMPLAINT: 'email_complained',
  REJECT: 'email_rejected',
  RENDERING_FAILURE: 'email_failed',
  OPEN: 'email_opened',
  CLICK: 'email_clicked',
  SUBSCRIPTION: 'email_unsubscribed',
};

const ses: Provider = {
  title: 'Amazon SES',
  service: 'ses',
  forms: [
    {
      kind: 'suppressions',
      lists: ['SuppressedDestinationSummaries'],
      keys: ['EmailAddress', 'Reason'],
    },
    form(
      'domains',
      ['EmailIdentities'],
      ['IdentityName', 'IdentityType'],
      z.object({ IdentityName: text, IdentityType: text }),
      ({ IdentityName, IdentityType }) => [
        {
          kind: 'domain',
          name: IdentityName,
          ...(IdentityType === 'EMAIL_ADDRESS' ? { fault: 'is an address: add its domain' } : {}),
        },
      ],
    ),
    form(
      'templates',
      [null],
      ['TemplateName', 'TemplateContent'],
      z.object({
        TemplateName: text,
        TemplateContent: z.object({ Subject: optionalText, Html: optionalText, Text: optionalText }),
      }),
      ({ TemplateName, TemplateContent }) => [
        {
          kind: 'template',
          name: TemplateName,
          title: TemplateName,
          language: 'ses',
          type: null,
          subject: filled(TemplateContent.Subject),
          html: filled(TemplateContent.Html),
          text: filled(TemplateContent.Text),
        },
      ],
    ),
    {
      kind: 'names of templates',
      lists: ['TemplatesMetadata'],
      keys: ['TemplateName'],
      instead: 'export each of them: aws sesv2 get-email-template --template-name NAME',
    },
    form(
      'event destinations',
      ['EventDestinations'],
      ['Name', 'MatchingEventTypes'],
      z.object({
        MatchingEventTypes: z.array(text),
        SnsDestination: z.object({ TopicArn: text }).nullish(),
      }),
      ({ MatchingEventTypes, SnsDestination }) =>
        SnsDestination
          ? [{ kind: 'topic', topic: SnsDestination.TopicArn, ...mapEvents(SES_EVENTS, MatchingEventTypes) }]
          : [],
    ),
    form(
      'subscriptions of topics',
      ['Subscriptions'],
      ['TopicArn', 'Protocol', 'Endpoint'],
      z.object({ TopicArn: text, Protocol: text, Endpoint: text }),
      ({ TopicArn, Protocol, Endpoint }) =>
        /^https?$/.test(Protocol) ? [{ kind: 'endpoint', topic: TopicArn, url: Endpoint }] : [],
    ),
  ],
};

// listmonk: https://listmonk.app/docs/apis/apis

const listmonkList = z.object({
  name: text,
  optin: optionalText,
  subscription_status: optionalText,
  subscription_created_at: optionalText,
});

const listmonkSubscriber = z.object({
  email: text,
  name: optionalText,
  status: optionalText,
  attribs: z.record(text, z.unknown()).nullish(),
  lists: z.array(listmonkList).nullish(),
});

function readSubscriber({
  email,
  name,
  status,
  attribs,
  lists,
}: z.output<typeof listmonkSubscriber>): PersonItem {
  const fullName = name?.trim() ?? '';
  const space = fullName.indexOf(' ');
  const custom = {
    ...attribs,
    ...(fullName === '' || attribs?.['fullName'] !== undefined ? {} : { fullName }),
  };
  return {
    email,
    profile: {
      email,
      ...(fullName === '' ? {} : { firstName: space === -1 ? fullName : fullName.slice(0, space) }),
      ...(space === -1 ? {} : { lastName: fullName.slice(space + 1).trim() }),
      ...(Object.keys(custom).length === 0 ? {} : { customFields: custom }),
    },
    groups: (lists ?? []).map((list) => ({
      list: list.name,
      isActive: list.subscription_status !== 'unsubscribed',
      isConfirmed: list.subscription_status === 'confirmed',
      isSingle: list.optin ? list.optin === 'single' : null,
      details: `listmonk: list "${list.name}", ${list.subscription_status ?? 'unconfirmed'}${
        list.subscription_created_at ? `, subscribed ${list.subscription_created_at}` : ''
      }`.slice(0, 500),
    })),
    // listmonk does not state why, and sends nothing to them.
    suppressed: status === 'blocklisted' || status === 'disabled' ? 'manual' : null,
  };
}

const listmonk: Provider = {
  title: 'listmonk',
  service: null,
  forms: [
    {
      kind: 'contacts',
      lists: ['data.results'],
      keys: ['email', 'status', 'attribs', 'uuid'],
      person: parsed(listmonkSubscriber, readSubscriber),
    },
    form(
      'lists',
      ['data.results', 'data', ''],
      ['uuid', 'name', 'optin'],
      z.object({ name: text, optin: text, description: optionalText, tags: z.array(text).nullish() }),
      ({ name, optin, description, tags }) => [
        {
          kind: 'list',
          name,
          description: filled(description),
          tags: tags ?? [],
          isSingle: optin === 'single',
        },
      ],
    ),
    form(
      'templates',
      ['data'],
      ['id', 'name', 'body', 'type'],
      z.object({ name: text, body: text, type: text, subject: optionalText }),
      ({ name, body, type, subject }) => [
        {
          kind: 'template',
          name,
          title: name,
          language: 'go',
          type: type === 'tx' ? 'transactional' : 'marketing',
          subject: type === 'tx' ? filled(subject) : null,
          html: filled(body),
          text: null,
          isLayout: type !== 'tx',
        },
      ],
    ),
  ],
};

export const PROVIDERS: Readonly<Record<ProviderName, Provider>> = {
  postmark,
  sendgrid,
  mailgun,
  resend,
  ses,
  listmonk,
};

/** Columns of the contacts that a provider exports as CSV, folded: the field of an entry. */
export const CONTACT_COLUMNS: Partial<Record<ProviderName, Readonly<Record<string, string>>>> = {
  listmonk: { uuid: 'uuid', email: 'email', name: 'name', attributes: 'attribs', status: 'status' },
  resend: { email: 'email', firstname: 'first_name', lastname: 'last_name', unsubscribed: 'unsubscribed' },
};
