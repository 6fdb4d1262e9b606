print('{"score": 0.6999}')
