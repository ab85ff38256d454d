import { useState } from 'preact/hooks';
import { operate } from '../../api.ts';
import { type Data, useOperation } from '../../data.ts';
import type { DataOf } from '../../operations.ts';
import { Button } from '../../parts/button.tsx';
import { Field } from '../../parts/field.tsx';
import { fieldChoice, fieldText } from '../../parts/field-text.ts';
import { Empty, Loaded, Outcome, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { type InboundRoute, ROUTES } from './tabs.tsx';

const ACTIONS = ['store', 'webhook'] as const satisfies InboundRoute['action'][];
const SPAM_POLICIES = ['mark', 'reject'] as const satisfies InboundRoute['spamPolicy'][];

interface RouteFormProps {
  /** Null: a new one. */
  route: InboundRoute | null;
  /** Those of the account. */
  domains: Data<DataOf<'/web-setup/domains'>>;
  onSaved: (route: InboundRoute) => void;
}

/** The fields of a route; only readable for those who may not change it. */
export function RouteForm({ route, domains, onSaved }: RouteFormProps) {
  const { t } = useTexts();
  const { href } = useNavigation();
  const { accountId, may } = useMember();
  const [domainId, setDomainId] = useState(route?.domainId);
  const [action, setAction] = useState(route?.action ?? 'store');
  const webhooks = useOperation(action === 'webhook' ? '/web-setup/webhooks' : null, {
    includeInactive: 'true',
  });
  const { outcome, run } = useAction();
  const isReadOnly = !may(route === null ? 'createInboundRoute' : 'updateInboundRoute');
  const save = (fields: FormData) =>
    run(async () => {
      const body = {
        name: fieldText(fields, 'name'),
        match: fieldText(fields, 'match'),
        domainId: fieldText(fields, 'domainId'),
        action,
        webhookId: action === 'webhook' ? fieldText(fields, 'webhookId') : null,
        spamPolicy: fieldChoice(fields, 'spamPolicy', SPAM_POLICIES) ?? 'mark',
        isActive: fields.has('isActive'),
      };
      const saved =
        route === null
          ? await operate('post', ROUTES, { account: accountId, body })
          : await operate('patch', `${ROUTES}/{routeId}`, {
              account: accountId,
              parameters: { routeId: route.routeId },
              body,
            });
      onSaved(saved.route);
      return '';
    });
  return (
    <Loaded data={domains}>
      {({ domains: listed }) => {
        if (listed.length === 0)
          return (
            <Empty title={t('inbound.routes.noDomain')} icon="globe">
              <p>{t('inbound.routes.noDomain.hint')}</p>
              <a class="button" href={href('domains/new')}>
                {t('domains.add')}
              </a>
            </Empty>
          );
        const chosen = listed.find((each) => each.domainId === domainId) ?? listed[0];
        return (
          <form
            aria-label={t(route === null ? 'inbound.routes.new' : 'inbound.route')}
            onSubmit={(event) => {
              event.preventDefault();
              void save(new FormData(event.currentTarget));
            }}
          >
            <fieldset disabled={isReadOnly}>
              <Field label={t('people.name')}>
                {(control) => (
                  <input
                    {...control}
                    class="input"
                    name="name"
                    required
                    maxLength={200}
                    autocomplete="off"
                    defaultValue={route?.name ?? ''}
                  />
                )}
              </Field>
              <Field label={t('messages.domain')}>
                {(control) => (
                  <select
                    {...control}
                    class="select"
                    name="domainId"
                    value={chosen?.domainId}
                    onChange={({ currentTarget: { value } }) => setDomainId(value)}
                  >
                    {listed.map((each) => (
                      <option key={each.domainId} value={each.domainId}>
                        {each.domain}
                      </option>
                    ))}
                  </select>
                )}
              </Field>
              <Field
                label={t('inbound.routes.match')}
                hint={t('inbound.routes.match.hint', { domain: chosen?.domain ?? '' })}
              >
                {(control) => (
                  <input
                    {...control}
                    class="input"
                    name="match"
                    required
                    minLength={3}
                    maxLength={320}
                    autocomplete="off"
                    autocapitalize="none"
                    spellcheck={false}
                    placeholder={`support@in.${chosen?.domain}`}
                    defaultValue={route?.match ?? ''}
                  />
                )}
              </Field>
              <fieldset class="group">
                <legend>{t('inbound.routes.action')}</legend>
                {ACTIONS.map((name) => (
                  <label class="check" key={name}>
                    <input
                      class="tick"
                      type="radio"
                      name="action"
                      value={name}
                      checked={action === name}
                      onChange={() => setAction(name)}
                    />{' '}
                    <span>
                      <strong>{t(`inbound.routes.action.${name}`)}</strong>{' '}
                      <span class="small">{t(`inbound.routes.action.${name}.hint`)}</span>
                    </span>
                  </label>
                ))}
              </fieldset>
              {action === 'webhook' && (
                <Field label={t('inbound.routes.webhook')}>
                  {(control) => (
                    <select {...control} class="select" name="webhookId" required>
                      <option value="">{t('inbound.routes.webhook.choose')}</option>
                      {(webhooks.value?.webhooks ?? []).map(({ webhookId, name, url }) => (
                        <option key={webhookId} value={webhookId} selected={webhookId === route?.webhookId}>
                          {name || url}
                        </option>
                      ))}
                    </select>
                  )}
                </Field>
              )}
              <fieldset class="group">
                <legend>{t('inbound.routes.forged')}</legend>
                {SPAM_POLICIES.map((name) => (
                  <label class="check" key={name}>
                    <input
                      class="tick"
                      type="radio"
                      name="spamPolicy"
                      value={name}
                      defaultChecked={name === (route?.spamPolicy ?? 'mark')}
                    />{' '}
                    <span>
                      <strong>{t(`inbound.routes.forged.${name}`)}</strong>{' '}
                      <span class="small">{t(`inbound.routes.forged.${name}.hint`)}</span>
                    </span>
                  </label>
                ))}
              </fieldset>
              <label class="check">
                <input
                  class="tick"
                  type="checkbox"
                  name="isActive"
                  defaultChecked={route?.isActive ?? true}
                />{' '}
                {t('inbound.routes.isActive')}
              </label>
            </fieldset>
            {!isReadOnly && (
              <div class="actions">
                <Button
                  type="submit"
                  kind="primary"
                  label={t(route === null ? 'groups.create' : 'me.save')}
                  isBusy={outcome?.running === true}
                />
              </div>
            )}
            <Outcome of={outcome} />
          </form>
        );
      }}
    </Loaded>
  );
}
