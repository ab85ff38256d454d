import { useRef, useState } from 'preact/hooks';
import type { OpenApiParameter } from '../../../http/openapi/document.ts';
import { exchange, type RawResponse } from '../../api.ts';
import { Button } from '../../parts/button.tsx';
import { filledFields } from '../../parts/filled-fields.ts';
import { Chip, Command, Confirmed, Copy, Outcome, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { usePageTitle } from '../../shell/crumbs.tsx';
import { useTexts } from '../../texts.ts';
import { type ApiOperation, curlCommand, requestHeaders, requestPath } from './operations.ts';

/** Values of parameters are in the address with this prefix, so that none is taken for one of the page. */
const PREFIX = 'in.';

/** A form with the parameters and the body of an operation, and the response to it. */
export function OperationForm({ operation }: { operation: ApiOperation }) {
  const { t } = useTexts();
  const { location, href, go } = useNavigation();
  const { accountId, person } = useMember();
  const { method, path, bodies, parameters } = operation;
  const form = useRef<HTMLFormElement>(null);
  const [type, setType] = useState(bodies[0]?.type ?? '');
  const [response, setResponse] = useState<(RawResponse & { command: string }) | null>(null);
  const { outcome, run } = useAction();
  const example = bodies.find((each) => each.type === type)?.example ?? '';

  const call = async (element: HTMLFormElement) => {
    const { [BODY]: text = '', ...fields } = filledFields(element);
    const values = Object.fromEntries(
      Object.entries(fields).map(([name, value]) => [name.slice(PREFIX.length), value]),
    );
    const body = bodies.length === 0 ? null : { type, text };
    const headers = requestHeaders(operation, values);
    const query = { filter: location.query['filter'], ...fields };
    go(href(`reference/${encodeURIComponent(operation.id)}`, query), { replace: true });
    await run(async () => {
      setResponse(null);
      const target = requestPath(operation, values);
      const answer = await exchange(target, { method, headers, body, account: accountId });
      setResponse({
        ...answer,
        command: curlCommand({ method, apiUrl: person.apiUrl, path: target, accountId, headers, body }),
      });
      return t('api.answered', { status: answer.status, time: Math.round(answer.ms) });
    });
  };

  usePageTitle(operation.summary);
  return (
    <section class="card card-body" aria-label={operation.summary}>
      <h2>{operation.summary}</h2>
      <p class="value">
        <code>
          {method} {path}
        </code>
      </p>
      {operation.description !== '' && <p class="description">{operation.description}</p>}
      <form
        ref={form}
        onSubmit={(event) => {
          event.preventDefault();
          void call(event.currentTarget);
        }}
      >
        {parameters.map((each) => (
          <ParameterField key={each.name} of={each} value={location.query[PREFIX + each.name] ?? ''} />
        ))}
        {bodies.length > 1 && (
          <label class="field">
            {t('api.type')}
            <select
              class="select"
              value={type}
              onChange={({ currentTarget }) => setType(currentTarget.value)}
            >
              {bodies.map((each) => (
                <option key={each.type}>{each.type}</option>
              ))}
            </select>
          </label>
        )}
        {bodies.length > 0 && (
          <label class="field">
            {t('api.body')}
            <textarea
              class="textarea"
              key={type}
              name={BODY}
              rows={12}
              spellcheck={false}
              defaultValue={example}
            />
          </label>
        )}
        {method !== 'GET' && <p class="small">{t('api.real', { account: accountId })}</p>}
        <div class="actions">
          {method === 'DELETE' ? (
            <Confirmed
              label={t('api.send')}
              question={t('api.delete.confirm', { operation: operation.summary })}
              action={async () => {
                if (form.current?.reportValidity()) await call(form.current);
              }}
            />
          ) : (
            <Button type="submit" kind="primary" label={t('api.send')} isBusy={outcome?.running === true} />
          )}
        </div>
      </form>
      <Outcome of={outcome} />
      {response !== null && <Response of={response} />}
    </section>
  );
}

/** The name of the field with the body; no parameter has it because of the prefix. */
const BODY = 'body';

function ParameterField({ of, value }: { of: OpenApiParameter; value: string }) {
  const { t } = useTexts();
  const { name, description, required, schema, in: place } = of;
  const hint = `parameter-${name}`;
  const choices = choicesOf(schema);
  const field = { name: PREFIX + name, required, 'aria-describedby': hint };
  return (
    <label class="field">
      {name} {required ? '' : t('api.optional')}
      {choices.length > 0 ? (
        <select class="select" {...field}>
          {!required && <option value="" />}
          {choices.map((choice) => (
            <option key={choice} selected={choice === value}>
              {choice}
            </option>
          ))}
        </select>
      ) : (
        <input class="input" {...field} defaultValue={value} autoComplete="off" />
      )}
      <span class="small" id={hint}>
        {t(`api.in.${place}`)}
        {description === undefined ? '' : `: ${description}`}
      </span>
    </label>
  );
}

/** The only values that a parameter may have; empty if there are others. */
function choicesOf(schema: object): string[] {
  const listed = 'enum' in schema && Array.isArray(schema.enum) ? schema.enum : [];
  return listed.every((choice) => typeof choice === 'string') ? listed : [];
}

function Response({ of }: { of: RawResponse & { command: string } }) {
  const { t } = useTexts();
  const { status, requestId, text, isCut, command } = of;
  return (
    <section aria-label={t('api.response')}>
      <h3>{t('api.response')}</h3>
      <p>
        <Chip kind={status < 400 ? 'ok' : 'bad'}>{status}</Chip>{' '}
        {requestId !== '' && <span class="small">{t('app.error.request', { id: requestId })}</span>}
      </p>
      {isCut && <p>{t('api.cut')}</p>}
      <pre tabIndex={0}>{readable(text)}</pre>
      <Copy text={text} label={t('api.copy')} />
      <Command text={command} />
    </section>
  );
}

/** JSON with one field per line; other texts unchanged. */
function readable(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
