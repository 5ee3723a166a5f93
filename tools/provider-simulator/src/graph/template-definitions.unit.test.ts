import { templateRefusal, templateSchema, type SentComponent, type TemplateInput } from './template-definitions';

const refusal = (definition: Partial<TemplateInput>, components: SentComponent[]): number | undefined =>
  templateRefusal(templateSchema.parse({ name: 'autumn_offer', language: 'en_US', ...definition }), components)?.code;
const body = (...names: (string | undefined)[]): SentComponent => ({ type: 'body', parameters: names.map((name) => ({ name })) });

describe('templateRefusal', () => {
  it('wants exactly the number of parameters', () => {
    expect(refusal({ body: 2 }, [body(undefined, undefined)])).toBeUndefined();
    expect(refusal({ body: 2 }, [body(undefined)])).toBe(132000);
    expect(refusal({ body: 0 }, [body(undefined)])).toBe(132000);
    expect(refusal({ body: 2 }, [])).toBe(132000);
    expect(refusal({ header: 1 }, [])).toBe(132000);
  });

  it('says the counts as Meta does', () => {
    const definition = templateSchema.parse({ name: 'autumn_offer', language: 'en_US', body: 2 });
    expect(templateRefusal(definition, [body(undefined)])).toEqual({
      code: 132000,
      details: 'body: number of localizable_params (1) does not match the expected number of params (2)',
    });
  });

  it('wants named parameters by name, in any order', () => {
    expect(refusal({ body: ['first_name', 'discount'] }, [body('discount', 'first_name')])).toBeUndefined();
    expect(refusal({ body: ['first_name', 'discount'] }, [body('first_name', 'rebate')])).toBe(132012);
    expect(refusal({ body: ['first_name', 'discount'] }, [body('first_name')])).toBe(132000);
  });

  it('wants a parameter for each dynamic button', () => {
    const button: SentComponent = { type: 'button', index: '1', parameters: [{}] };
    expect(refusal({ dynamicButtons: [1] }, [button])).toBeUndefined();
    expect(refusal({ dynamicButtons: [0, 1] }, [button])).toBe(131008);
  });

  it.each([
    ['PAUSED', 132015],
    ['DISABLED', 132016],
    ['PENDING', 132001],
    ['REJECTED', 132001],
    ['APPROVED', undefined],
  ] as const)('judges a template that is %s', (status, expected) => {
    expect(refusal({ status }, [])).toBe(expected);
  });
});
