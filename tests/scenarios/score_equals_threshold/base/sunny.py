print('{"score": 0.7}')
